-- pandas.read_sql of text
SELECT zone, COUNT(*) AS n, SUM(CASE WHEN fare > 20 THEN 1 ELSE 0 END) AS long FROM rides GROUP BY zone ORDER BY 2 DESC;
-- SQLAlchemy's select of a table
SELECT rides.zone, count(*) AS count_1 FROM rides WHERE rides.fare > 5 GROUP BY rides.zone;
-- SQLAlchemy's select of a subquery
SELECT anon_1.zone, avg(clamp(anon_1.fare, 0, 100)) AS mean FROM (SELECT rides.zone AS zone, rides.fare AS fare FROM rides WHERE rides.fare > 5) AS anon_1 GROUP BY anon_1.zone;
-- ibis on DuckDB
SELECT "t1"."zone", COUNT(*) AS "n" FROM (SELECT * FROM "rides" AS "t0" WHERE "t0"."fare" > CAST(5 AS TINYINT)) AS "t1" GROUP BY 1;
-- pandas.read_sql_table: refused, rows never leave
SELECT rides.rider, rides.zone, rides.fare FROM rides
