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
WITH counts AS (SELECT zone, COUNT(*) AS n, COUNT(*) FILTER (WHERE fare > 20) AS n_long FROM "public"."rides" GROUP BY 1), final AS (SELECT zone, n, n * 1.0 / (SELECT SUM(n) FROM counts) AS share_of_total, n_long * 1.0 / NULLIF(n, 0) AS share_long FROM counts) SELECT * FROM final
