-- a card
SELECT COUNT(1) AS "a0" FROM (SELECT "_"."rider", "_"."zone", "_"."fare" FROM "public"."rides" "_") AS "rows";
-- a bar chart of DirectQuery
SELECT "zone", COUNT(*) AS "C1" FROM (SELECT "_"."zone" AS "zone", "_"."fare" AS "fare" FROM "public"."rides" AS "_" WHERE "_"."fare" > 5) AS "basetable0" GROUP BY "zone" LIMIT 1000001;
-- a measure that divides
SELECT "rows"."zone" AS "zone", SUM(CASE WHEN "rows"."fare" > 20 THEN 1 ELSE 0 END) / COUNT(1) AS "a0" FROM (SELECT "_"."zone", "_"."fare" FROM "public"."rides" AS "_") AS "rows" GROUP BY "rows"."zone";
-- groups of a folded query that is filtered above
SELECT "_"."zone", "_"."n" FROM (SELECT "rows"."zone" AS "zone", COUNT(1) AS "n" FROM "public"."rides" AS "rows" GROUP BY "rows"."zone") AS "_" WHERE "_"."n" > 50 LIMIT 4096;
-- new names above a question
SELECT "_"."n" AS "c1" FROM (SELECT COUNT(1) AS "n" FROM "public"."rides") AS "_";
-- a slicer of times over days
select "rows"."zone" as "zone", count(1) as "a0" from ( select "_"."rider", "_"."zone" from "public"."rides" "_" where "_"."day" >= timestamp '2013-01-01 00:00:00' and "_"."day" < timestamp '2014-01-01 00:00:00' ) "rows" group by "zone" limit 1000001;
-- different values, ordered above
select "_"."zone", "_"."a0" from ( select "rows"."zone" as "zone", count(distinct "rows"."rider") as "a0" from "public"."rides" "rows" group by "zone" ) "_" order by "_"."zone" limit 501;
-- a relation of two tables
select "_"."t0_0" as "zone", "_"."a0" as "a0" from (select "$Outer"."borough" as "t0_0", count(1) as "a0" from "public"."rides" as "$Inner" left outer join "public"."zones" as "$Outer" on ("$Inner"."zone" = "$Outer"."id") group by "$Outer"."borough") "_" limit 1000001;
-- years
select extract(year from "rows"."day") as "y", count(1) as "a0" from (select cast("_"."day" as date) as "day" from "public"."rides" "_" where "_"."zone" = 3 and "_"."zone" is not null) "rows" group by extract(year from "rows"."day");
-- a computed column that is added up
select sum("rows"."a") as "a0" from (select case when "_"."fare" > 5 then 1 else 0 end as "a" from "public"."rides" "_") "rows";
-- different values, none among them: refused
select count(distinct("rows"."rider")) + max(case when "rows"."rider" is null then 1 else 0 end) as "a0" from "public"."rides" "rows"
