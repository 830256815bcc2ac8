-- a card
SELECT COUNT(1) AS "a0" FROM (SELECT "_"."rider", "_"."zone", "_"."fare" FROM "public"."rides" "_") AS "rows";
-- a bar chart of DirectQuery
SELECT "zone", COUNT(*) AS "C1" FROM (SELECT "_"."zone" AS "zone", "_"."fare" AS "fare" FROM "public"."rides" AS "_" WHERE "_"."fare" > 5) AS "basetable0" GROUP BY "zone" LIMIT 1000001;
-- a measure that divides
SELECT "rows"."zone" AS "zone", SUM(CASE WHEN "rows"."fare" > 20 THEN 1 ELSE 0 END) / COUNT(1) AS "a0" FROM (SELECT "_"."zone", "_"."fare" FROM "public"."rides" AS "_") AS "rows" GROUP BY "rows"."zone";
-- groups of a folded query that is filtered above
SELECT "_"."zone", "_"."n" FROM (SELECT "rows"."zone" AS "zone", COUNT(1) AS "n" FROM "public"."rides" AS "rows" GROUP BY "rows"."zone") AS "_" WHERE "_"."n" > 50 LIMIT 4096;
-- new names above a question
SELECT "_"."n" AS "c1" FROM (SELECT COUNT(1) AS "n" FROM "public"."rides") AS "_"
