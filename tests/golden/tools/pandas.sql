-- pandas.read_sql of text
SELECT zone, COUNT(*) AS n, SUM(CASE WHEN fare > 20 THEN 1 ELSE 0 END) AS long FROM rides GROUP BY zone ORDER BY 2 DESC;
-- SQLAlchemy's select of a table
SELECT rides.zone, count(*) AS count_1 FROM rides WHERE rides.fare > 5 GROUP BY rides.zone;
-- SQLAlchemy's select of a subquery
SELECT anon_1.zone, avg(clamp(anon_1.fare, 0, 100)) AS mean FROM (SELECT rides.zone AS zone, rides.fare AS fare FROM rides WHERE rides.fare > 5) AS anon_1 GROUP BY anon_1.zone;
-- ibis on DuckDB
SELECT "t1"."zone", COUNT(*) AS "n" FROM (SELECT * FROM "rides" AS "t0" WHERE "t0"."fare" > CAST(5 AS TINYINT)) AS "t1" GROUP BY 1;
-- pandas.read_sql_table: refused, rows never leave
SELECT rides.rider, rides.zone, rides.fare FROM rides;
-- SQLAlchemy's count of different values
SELECT count(distinct(rides.rider)) AS count_1 FROM rides;
-- SQLAlchemy's time series, its parameters filled in
SELECT date_trunc('month', rides.day) AS month, count(*) AS n FROM rides WHERE rides.zone IN (1, 2, 3) AND rides.day BETWEEN '2013-01-01' AND '2013-12-31' GROUP BY date_trunc('month', rides.day) ORDER BY month;
-- ibis, the share of the total
SELECT "t1"."zone", "t1"."n", "t1"."n" / NULLIF(SUM("t1"."n") OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING), 0) AS "share" FROM (SELECT "t0"."zone", COUNT(*) AS "n" FROM "rides" AS "t0" GROUP BY 1) AS "t1";
-- ibis, a date
SELECT "t0"."zone", COUNT(DISTINCT "t0"."rider") AS "riders" FROM "rides" AS "t0" WHERE "t0"."day" > MAKE_DATE(2013, 1, 1) GROUP BY "t0"."zone";
-- days of times, and the first rows
SELECT * FROM (SELECT CAST(rides.at AS DATE) AS day, count(*) AS n FROM rides GROUP BY CAST(rides.at AS DATE)) AS q WHERE 1=1 ORDER BY n DESC FETCH FIRST 5 ROWS ONLY;
-- months as text
SELECT to_char(rides.at, 'YYYY-MM') AS month, count(*) AS n FROM rides GROUP BY to_char(rides.at, 'YYYY-MM')
