-- a dimension and the number of records
SELECT "rides"."zone" AS "zone", SUM(1) AS "sum:Number of Records:ok" FROM "public"."rides" "rides" GROUP BY 1;
-- a measure by month, and a filter that keeps groups with rows
SELECT CAST(DATE_TRUNC('MONTH', CAST("rides"."day" AS DATE)) AS DATE) AS "tmn:day:ok", COUNT(1) AS "cnt:rider:ok" FROM "public"."rides" "rides" GROUP BY 1 HAVING (COUNT(1) > 0);
-- custom SQL
SELECT "Custom SQL Query"."zone" AS "zone", AVG(CLAMP("Custom SQL Query"."fare", 0, 100)) AS "avg:fare:ok" FROM (SELECT * FROM rides WHERE fare > 0) "Custom SQL Query" GROUP BY 1;
-- a joined table
SELECT "zones"."borough" AS "borough", SUM(1) AS "sum:Number of Records:ok" FROM "public"."rides" "rides" LEFT JOIN "public"."zones" "zones" ON ("rides"."zone" = "zones"."id") GROUP BY 1;
-- a domain of values for a filter: refused
SELECT "rides"."zone" AS "zone" FROM "public"."rides" "rides" GROUP BY 1 ORDER BY 1 ASC;
-- a level of detail: refused
SELECT "t0"."zone" AS "zone", AVG("t0"."__measure__0") AS "avg:LOD:ok" FROM (SELECT "rides"."zone" AS "zone", COUNT(1) AS "__measure__0" FROM "public"."rides" "rides" GROUP BY 1) "t0" GROUP BY 1;
-- a bin of a calculated field
SELECT (CASE WHEN ("rides"."fare" < 10) THEN 'low' WHEN ("rides"."fare" < 30) THEN 'middle' ELSE 'high' END) AS "Calculation_1", SUM(1) AS "cnt:rides:ok" FROM "public"."rides" "rides" WHERE (NOT ("rides"."zone" IS NULL)) GROUP BY 1 HAVING (COUNT(1) > 0);
-- different values
SELECT "rides"."zone" AS "zone", COUNT(DISTINCT "rides"."rider") AS "ctd:rider:ok" FROM "public"."rides" "rides" GROUP BY 1;
-- years
SELECT CAST(TRUNC(EXTRACT(YEAR FROM "rides"."day")) AS INTEGER) AS "yr:day:ok", SUM(1) AS "n" FROM "public"."rides" "rides" GROUP BY 1;
-- quarters, a number as text, and a range of days
SELECT CAST(EXTRACT(QUARTER FROM "rides"."day") AS INTEGER) AS "qr:day:ok", CAST("rides"."zone" AS TEXT) AS "zone", SUM(1) AS "n" FROM "public"."rides" "rides" WHERE (("rides"."day" >= (DATE '2013-01-01')) AND ("rides"."day" <= (DATE '2013-06-30'))) GROUP BY 1, 2;
-- a set, in or out
SELECT (CASE WHEN ("rides"."zone" IN (1, 2)) THEN 'in' ELSE 'out' END) AS "io:Set:nk", SUM(1) AS "n" FROM "public"."rides" "rides" WHERE ("rides"."at" >= (TIMESTAMP '2013-01-01 00:00:00.000')) GROUP BY 1;
-- bins of a number
SELECT (FLOOR("rides"."fare" / 10.0) * 10) AS "fare (bin)", COUNT("rides"."fare") AS "cnt:fare:ok" FROM "public"."rides" "rides" GROUP BY 1;
-- the first ten of a filter: refused
SELECT "rides"."zone" AS "zone", SUM(1) AS "n" FROM "public"."rides" "rides" INNER JOIN (SELECT "rides"."zone" AS "zone", COUNT(1) AS "$__alias__0" FROM "public"."rides" "rides" GROUP BY 1 ORDER BY 2 DESC, 1 ASC LIMIT 10) "t0" ON ("rides"."zone" = "t0"."zone") GROUP BY 1
