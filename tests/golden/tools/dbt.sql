-- a model in steps
WITH source AS (SELECT * FROM public.rides), renamed AS (SELECT zone AS zone_id, fare AS amount, day AS ridden_on FROM source WHERE fare IS NOT NULL), final AS (SELECT zone_id, COUNT(*) AS rides, AVG(CLAMP(amount, 0, 100)) AS mean FROM renamed GROUP BY 1) SELECT * FROM final;
-- the preview of a model
SELECT * FROM (WITH rides_ AS (SELECT * FROM rides), joined AS (SELECT rides_.fare, zones.borough FROM rides_ LEFT JOIN zones ON rides_.zone = zones.id) SELECT borough, COUNT(*) AS n FROM joined GROUP BY borough) AS model_limit_subq LIMIT 500;
-- a test of not null: refused for its comparisons
SELECT COUNT(*) AS failures, COUNT(*) <> 0 AS should_warn, COUNT(*) <> 0 AS should_error FROM (SELECT zone FROM rides WHERE zone IS NULL) dbt_internal_test;
-- a test of not null, without its conditions
SELECT COUNT(*) AS failures FROM (SELECT zone FROM rides WHERE zone IS NULL) dbt_internal_test;
-- a test of uniqueness: refused
SELECT COUNT(*) AS failures FROM (SELECT zone AS unique_field, COUNT(*) AS n_records FROM rides WHERE zone IS NOT NULL GROUP BY zone HAVING COUNT(*) > 1) dbt_internal_test;
-- a model of shares: counts, then their part of the total
WITH counts AS (SELECT zone, COUNT(*) AS n, COUNT(*) FILTER (WHERE fare > 20) AS n_long FROM "public"."rides" GROUP BY 1), final AS (SELECT zone, n, n * 1.0 / (SELECT SUM(n) FROM counts) AS share_of_total, n_long * 1.0 / NULLIF(n, 0) AS share_long FROM counts) SELECT * FROM final;
-- the comment and the full name of a compiled model
/* {"app": "dbt", "dbt_version": "1.8.3", "node_id": "model.city.zones"} */ select zone, count(*) as n from "farthing"."public"."rides" group by 1;
-- a test of accepted values, and the relation to a table, without their conditions
with child as (select zone as from_field from rides where zone is not null), parent as (select id as to_field from zones) select count(*) as failures from (select from_field from child left join parent on child.from_field = parent.to_field where parent.to_field is null) dbt_internal_test;
-- the first row of each rider
with base as (select *, row_number() over (partition by rider order by at) as rn from rides), first as (select * from base where rn = 1) select zone, count(*) as n from first group by 1 order by 2 desc;
-- riders by what they have
with by_rider as (select rider, count(*) as n, max(fare) as most from rides group by 1) select n >= 3 as frequent, count(*) as riders from by_rider group by 1;
-- an expression that is to hold, without its conditions
select count(*) as failures from (select * from rides where not (fare >= 0)) dbt_internal_test;
-- the difference to the month before
select date_trunc('month', day) as m, count(*) - lag(count(*)) over (order by date_trunc('month', day)) as diff from rides group by 1
