-- a bar chart of a physical dataset
SELECT zone AS zone, COUNT(*) AS count FROM public.rides GROUP BY zone ORDER BY count DESC LIMIT 1000;
-- a chart of a virtual dataset, with a metric of two
SELECT zone AS zone, SUM(CASE WHEN fare > 20 THEN 1 ELSE 0 END) * 100.0 / COUNT(*) AS "% long" FROM (SELECT * FROM rides WHERE fare > 0) AS virtual_table GROUP BY zone ORDER BY "% long" DESC LIMIT 1000;
-- a time series
SELECT DATE_TRUNC('day', day) AS day, COUNT(*) AS count FROM public.rides WHERE day >= DATE '2013-01-01' AND day < DATE '2013-02-01' GROUP BY DATE_TRUNC('day', day) ORDER BY count DESC LIMIT 50000;
-- a big number
SELECT COUNT(*) AS count FROM public.rides LIMIT 50000;
-- a chart of a virtual dataset with aggregates, asked in SQL Lab
SELECT * FROM (SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone ORDER BY n DESC LIMIT 10) AS inner_qry LIMIT 1001;
-- SUM(column) with quotes in the metric's name
SELECT zone AS zone, SUM(CLAMP(fare, 0, 100)) AS "SUM(fare)" FROM public.rides WHERE zone IN (1, 2, 3) GROUP BY zone ORDER BY "SUM(fare)" DESC LIMIT 100;
-- the aggregate of an aggregated dataset: refused
SELECT AVG(n) AS "AVG(n)" FROM (SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone) AS virtual_table LIMIT 50000;
-- a filter box: refused, rows never leave
SELECT zone AS zone FROM public.rides GROUP BY zone LIMIT 1000;
-- a time range of a column of times
SELECT DATE_TRUNC('week', at) AS __timestamp, zone AS zone, COUNT(*) AS count FROM (SELECT * FROM public.rides WHERE fare > 5) AS virtual_table WHERE at >= TO_TIMESTAMP('2013-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND at < TO_TIMESTAMP('2013-02-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('week', at), zone ORDER BY count DESC LIMIT 10000;
-- a time range of a column of days
SELECT zone, COUNT(*) AS count FROM public.rides WHERE day >= TO_DATE('2013-01-01', 'YYYY-MM-DD') GROUP BY zone LIMIT 1000;
-- a metric in SQL that is a share of the total
SELECT zone AS zone, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS "% of total" FROM public.rides GROUP BY zone ORDER BY "% of total" DESC LIMIT 1000;
-- a share of the total of a virtual dataset with aggregates, asked in SQL Lab
SELECT zone, n, n * 100.0 / SUM(n) OVER () AS pct FROM (SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone) AS inner_qry LIMIT 1001;
-- different values, before a comment
SELECT COUNT(DISTINCT rider) AS "COUNT_DISTINCT(rider)" FROM public.rides LIMIT 50000 /* 6dcd92a04feb50f14bbcf07c661680ba */;
-- a condition that is always true, and a condition on a metric
SELECT zone AS zone, AVG(CLAMP(fare, 0, 100)) AS "AVG(fare)", COUNT(*) AS count FROM public.rides WHERE 1 = 1 AND ((fare > 5)) GROUP BY zone HAVING ((COUNT(*) > 10)) ORDER BY "AVG(fare)" DESC LIMIT 100;
-- a virtual dataset with filters above it
SELECT zone AS zone, COUNT(*) AS count FROM (SELECT * FROM public.rides WHERE day >= '2013-01-01'
) AS virtual_table WHERE zone NOT IN (1, 2) AND zone IS NOT NULL AND fare >= 5 AND fare < 50 GROUP BY zone ORDER BY count DESC LIMIT 1000 OFFSET 0;
-- a text filter, large or small letters
SELECT DATE_TRUNC('hour', at) AS at, COUNT(*) AS count FROM public.rides WHERE rider ILIKE '%Ab%' GROUP BY DATE_TRUNC('hour', at) LIMIT 10000;
-- a calculated column
SELECT CASE WHEN fare < 10 THEN 'low' ELSE 'high' END AS bucket, COUNT(*) AS count FROM public.rides GROUP BY CASE WHEN fare < 10 THEN 'low' ELSE 'high' END ORDER BY count DESC LIMIT 1000;
-- a limit of series: refused
SELECT DATE_TRUNC('month', day) AS day, zone AS zone, COUNT(*) AS count FROM public.rides JOIN (SELECT zone AS zone__, COUNT(*) AS mme_inner__ FROM public.rides GROUP BY zone ORDER BY mme_inner__ DESC LIMIT 5) AS series_limit ON zone = zone__ GROUP BY DATE_TRUNC('month', day), zone LIMIT 1000
