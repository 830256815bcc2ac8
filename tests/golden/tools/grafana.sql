-- a time series panel
SELECT DATE_TRUNC('day', day) AS "time", COUNT(*) AS "value" FROM rides WHERE day BETWEEN '2013-01-01' AND '2013-06-30' GROUP BY 1 ORDER BY 1;
-- a table panel of the query builder
SELECT COUNT(fare) AS "rides", zone FROM public.rides WHERE (zone = 3) GROUP BY zone LIMIT 50;
-- epoch seconds of a macro: refused
SELECT FLOOR(EXTRACT(EPOCH FROM day) / 3600) * 3600 AS "time", COUNT(*) AS "value" FROM rides GROUP BY 1 ORDER BY 1;
-- the macros of the time range, over hours
SELECT date_trunc('hour', at) AS "time", count(*) AS "rides" FROM rides WHERE at BETWEEN '2013-01-01T00:00:00Z' AND '2013-01-02T00:00:00Z' GROUP BY 1 ORDER BY 1;
-- a time range in another zone: refused
SELECT count(*) FROM rides WHERE at >= '2013-01-01T00:00:00+02:00';
-- a stacked panel in percent, by day and zone
SELECT DATE_TRUNC('day', at) AS "time", zone AS metric, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY DATE_TRUNC('day', at)) AS value FROM rides WHERE at BETWEEN '2013-01-01T00:00:00Z' AND '2013-01-07T23:59:59Z' GROUP BY 1, 2 ORDER BY 1;
-- a variable of several values, in quotes
SELECT COUNT(*) AS "n", zone FROM public.rides WHERE zone IN ('1','2') GROUP BY zone ORDER BY COUNT(*) DESC LIMIT 50;
-- the macro of time groups, of TimescaleDB
SELECT time_bucket('3600.000s', at) AS "time", count(*) AS "value" FROM rides WHERE at BETWEEN '2013-01-01T00:00:00Z' AND '2013-01-02T00:00:00Z' GROUP BY 1 ORDER BY 1;
-- buckets of a day
SELECT time_bucket('1 day', at) AS "time", zone::text AS metric, avg(clamp(fare, 0, 100)) AS "fare" FROM rides GROUP BY 1, 2 ORDER BY 1;
-- a quantile of times with a zone
SELECT date_trunc('hour', at)::timestamptz AS "time", percentile_cont(0.95) WITHIN GROUP (ORDER BY clamp(fare, 0, 100)) AS p95 FROM rides WHERE at >= '2013-01-01T00:00:00Z'::timestamptz GROUP BY 1;
-- a time range in seconds
SELECT count(*) AS "n" FROM rides WHERE at >= to_timestamp(1357000000) AND at <= to_timestamp(1357100000);
-- the values of a variable: refused
SELECT DISTINCT zone FROM rides ORDER BY zone
