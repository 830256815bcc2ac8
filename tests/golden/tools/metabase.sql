-- a count by a column, with its default limit
SELECT "public"."rides"."zone" AS "zone", COUNT(*) AS "count" FROM "public"."rides" GROUP BY "public"."rides"."zone" ORDER BY "public"."rides"."zone" ASC;
-- a time series by month, with a filter
SELECT DATE_TRUNC('month', "public"."rides"."day") AS "day", COUNT(*) AS "count" FROM "public"."rides" WHERE ("public"."rides"."day" >= DATE '2013-01-01') AND ("public"."rides"."day" < DATE '2014-01-01') GROUP BY DATE_TRUNC('month', "public"."rides"."day") ORDER BY DATE_TRUNC('month', "public"."rides"."day") ASC;
-- a question on a model or a saved question
SELECT "source"."zone" AS "zone", COUNT(*) AS "count" FROM (SELECT "public"."rides"."rider" AS "rider", "public"."rides"."zone" AS "zone", "public"."rides"."fare" AS "fare", "public"."rides"."day" AS "day" FROM "public"."rides" WHERE "public"."rides"."fare" > 5) AS "source" GROUP BY "source"."zone" ORDER BY "count" DESC, "source"."zone" ASC LIMIT 2000;
-- a custom column, then a share of rows
SELECT "source"."day" AS "day", SUM(CASE WHEN "source"."fare" > 20 THEN 1 ELSE 0.0 END) / COUNT(*) AS "share" FROM (SELECT "public"."rides"."fare" AS "fare", CAST(DATE_TRUNC('week', "public"."rides"."day") AS date) AS "day" FROM "public"."rides") AS "source" GROUP BY "source"."day" ORDER BY "source"."day" ASC;
-- a joined table
SELECT "Zones"."borough" AS "Zones__borough", COUNT(*) AS "count" FROM "public"."rides" LEFT JOIN "public"."zones" AS "Zones" ON "public"."rides"."zone" = "Zones"."id" GROUP BY "Zones"."borough" ORDER BY "Zones"."borough" ASC;
-- the rows of a table: refused
SELECT "public"."rides"."rider" AS "rider", "public"."rides"."zone" AS "zone" FROM "public"."rides" LIMIT 2000;
-- a post-aggregation filter
SELECT "source"."zone" AS "zone", "source"."count" AS "count" FROM (SELECT "public"."rides"."zone" AS "zone", COUNT(*) AS "count" FROM "public"."rides" GROUP BY "public"."rides"."zone" ORDER BY "public"."rides"."zone" ASC) AS "source" WHERE "source"."count" > 100 LIMIT 1048575;
-- a custom column of two summaries: a question about a summarized question
SELECT "source"."zone" AS "zone", "source"."count" AS "count", CAST("source"."long" AS DOUBLE PRECISION) / NULLIF(CAST("source"."count" AS DOUBLE PRECISION), 0.0) AS "share long" FROM (SELECT "public"."rides"."zone" AS "zone", COUNT(*) AS "count", SUM(CASE WHEN "public"."rides"."fare" > 20 THEN 1 ELSE 0.0 END) AS "long" FROM "public"."rides" GROUP BY "public"."rides"."zone" ORDER BY "public"."rides"."zone" ASC) AS "source" LIMIT 1048575;
-- a cumulative count
SELECT DATE_TRUNC('month', "public"."rides"."day") AS "day", SUM(COUNT(*)) OVER (ORDER BY DATE_TRUNC('month', "public"."rides"."day") ASC ROWS UNBOUNDED PRECEDING) AS "count" FROM "public"."rides" GROUP BY DATE_TRUNC('month', "public"."rides"."day") ORDER BY DATE_TRUNC('month', "public"."rides"."day") ASC;
-- different values, behind a comment
/* Metabase:: userID: 1 queryType: MBQL queryHash: 0a1b */ SELECT COUNT(DISTINCT "public"."rides"."rider") AS "count" FROM "public"."rides";
-- months of the year
SELECT CAST(EXTRACT(MONTH FROM "public"."rides"."day") AS integer) AS "day", COUNT(*) AS "count" FROM "public"."rides" GROUP BY CAST(EXTRACT(MONTH FROM "public"."rides"."day") AS integer) ORDER BY CAST(EXTRACT(MONTH FROM "public"."rides"."day") AS integer) ASC;
-- days of the week, from Sunday
SELECT (CAST(EXTRACT(DOW FROM "public"."rides"."at") AS integer) + 1) AS "at", COUNT(*) AS "count" FROM "public"."rides" GROUP BY (CAST(EXTRACT(DOW FROM "public"."rides"."at") AS integer) + 1) ORDER BY (CAST(EXTRACT(DOW FROM "public"."rides"."at") AS integer) + 1) ASC;
-- bins of a number
SELECT FLOOR(("public"."rides"."fare" / 12.5)) * 12.5 AS "fare", COUNT(*) AS "count" FROM "public"."rides" WHERE (("public"."rides"."zone" <> 3) OR ("public"."rides"."zone" IS NULL)) GROUP BY FLOOR(("public"."rides"."fare" / 12.5)) * 12.5 ORDER BY FLOOR(("public"."rides"."fare" / 12.5)) * 12.5 ASC;
-- a time range with its zone
SELECT COUNT(*) AS "count" FROM "public"."rides" WHERE ("public"."rides"."at" >= timestamp with time zone '2013-01-01 00:00:00.000Z') AND ("public"."rides"."at" < timestamp with time zone '2013-02-01 00:00:00.000Z');
-- a time range before today: refused
SELECT COUNT(*) AS "count" FROM "public"."rides" WHERE "public"."rides"."at" >= DATE_TRUNC('month', (NOW() + (INTERVAL '-12 month')))
