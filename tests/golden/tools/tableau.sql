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
SELECT (CASE WHEN ("rides"."fare" < 10) THEN 'low' WHEN ("rides"."fare" < 30) THEN 'middle' ELSE 'high' END) AS "Calculation_1", SUM(1) AS "cnt:rides:ok" FROM "public"."rides" "rides" WHERE (NOT ("rides"."zone" IS NULL)) GROUP BY 1 HAVING (COUNT(1) > 0)
