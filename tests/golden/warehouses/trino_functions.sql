-- (-real)
SELECT * FROM (SELECT -(CASE WHEN ((((ABS("t2"."c0")) <= (CAST('1e+150' AS DOUBLE))) OR (NOT (ABS("t2"."c0")) IS NULL AND IS_NAN((CAST('1e+150' AS DOUBLE)))))) THEN IF(((((CAST('1e-150' AS DOUBLE)) <= (ABS("t2"."c0"))) OR (NOT (CAST('1e-150' AS DOUBLE)) IS NULL AND IS_NAN((ABS("t2"."c0")))))), "t2"."c0", (CAST('0.0' AS DOUBLE))) ELSE NULL END) AS "v0" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- (-whole)
SELECT * FROM (SELECT (TRY((CAST(0 AS BIGINT)) - "t2"."c0")) AS "v0" FROM (SELECT "t1"."whole" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- (real + real)
SELECT * FROM (SELECT CASE WHEN ((((ABS("t2"."c0")) <= (CAST('1e+150' AS DOUBLE))) OR (NOT (ABS("t2"."c0")) IS NULL AND IS_NAN((CAST('1e+150' AS DOUBLE)))))) THEN IF(((((CAST('1e-150' AS DOUBLE)) <= (ABS("t2"."c0"))) OR (NOT (CAST('1e-150' AS DOUBLE)) IS NULL AND IS_NAN((ABS("t2"."c0")))))), "t2"."c0", (CAST('0.0' AS DOUBLE))) ELSE NULL END + CASE WHEN ((((ABS("t2"."c0")) <= (CAST('1e+150' AS DOUBLE))) OR (NOT (ABS("t2"."c0")) IS NULL AND IS_NAN((CAST('1e+150' AS DOUBLE)))))) THEN IF(((((CAST('1e-150' AS DOUBLE)) <= (ABS("t2"."c0"))) OR (NOT (CAST('1e-150' AS DOUBLE)) IS NULL AND IS_NAN((ABS("t2"."c0")))))), "t2"."c0", (CAST('0.0' AS DOUBLE))) ELSE NULL END AS "v0" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- (whole + whole)
SELECT * FROM (SELECT (TRY("t2"."c0" + "t2"."c0")) AS "v0" FROM (SELECT "t1"."whole" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- (real - real)
SELECT * FROM (SELECT CASE WHEN ((((ABS("t2"."c0")) <= (CAST('1e+150' AS DOUBLE))) OR (NOT (ABS("t2"."c0")) IS NULL AND IS_NAN((CAST('1e+150' AS DOUBLE)))))) THEN IF(((((CAST('1e-150' AS DOUBLE)) <= (ABS("t2"."c0"))) OR (NOT (CAST('1e-150' AS DOUBLE)) IS NULL AND IS_NAN((ABS("t2"."c0")))))), "t2"."c0", (CAST('0.0' AS DOUBLE))) ELSE NULL END - CASE WHEN ((((ABS("t2"."c0")) <= (CAST('1e+150' AS DOUBLE))) OR (NOT (ABS("t2"."c0")) IS NULL AND IS_NAN((CAST('1e+150' AS DOUBLE)))))) THEN IF(((((CAST('1e-150' AS DOUBLE)) <= (ABS("t2"."c0"))) OR (NOT (CAST('1e-150' AS DOUBLE)) IS NULL AND IS_NAN((ABS("t2"."c0")))))), "t2"."c0", (CAST('0.0' AS DOUBLE))) ELSE NULL END AS "v0" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- (whole - whole)
SELECT * FROM (SELECT (TRY("t2"."c0" - "t2"."c0")) AS "v0" FROM (SELECT "t1"."whole" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- (real * real)
SELECT * FROM (SELECT CASE WHEN ((((ABS("t2"."c0")) <= (CAST('1e+150' AS DOUBLE))) OR (NOT (ABS("t2"."c0")) IS NULL AND IS_NAN((CAST('1e+150' AS DOUBLE)))))) THEN IF(((((CAST('1e-150' AS DOUBLE)) <= (ABS("t2"."c0"))) OR (NOT (CAST('1e-150' AS DOUBLE)) IS NULL AND IS_NAN((ABS("t2"."c0")))))), "t2"."c0", (CAST('0.0' AS DOUBLE))) ELSE NULL END * CASE WHEN ((((ABS("t2"."c0")) <= (CAST('1e+150' AS DOUBLE))) OR (NOT (ABS("t2"."c0")) IS NULL AND IS_NAN((CAST('1e+150' AS DOUBLE)))))) THEN IF(((((CAST('1e-150' AS DOUBLE)) <= (ABS("t2"."c0"))) OR (NOT (CAST('1e-150' AS DOUBLE)) IS NULL AND IS_NAN((ABS("t2"."c0")))))), "t2"."c0", (CAST('0.0' AS DOUBLE))) ELSE NULL END AS "v0" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- (whole * whole)
SELECT * FROM (SELECT (TRY("t2"."c0" * "t2"."c0")) AS "v0" FROM (SELECT "t1"."whole" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- (real / real)
SELECT * FROM (SELECT ((CASE WHEN ((((ABS("t2"."c0")) <= (CAST('1e+150' AS DOUBLE))) OR (NOT (ABS("t2"."c0")) IS NULL AND IS_NAN((CAST('1e+150' AS DOUBLE)))))) THEN IF(((((CAST('1e-150' AS DOUBLE)) <= (ABS("t2"."c0"))) OR (NOT (CAST('1e-150' AS DOUBLE)) IS NULL AND IS_NAN((ABS("t2"."c0")))))), "t2"."c0", (CAST('0.0' AS DOUBLE))) ELSE NULL END) / (NULLIF(CASE WHEN ((((ABS("t2"."c0")) <= (CAST('1e+150' AS DOUBLE))) OR (NOT (ABS("t2"."c0")) IS NULL AND IS_NAN((CAST('1e+150' AS DOUBLE)))))) THEN IF(((((CAST('1e-150' AS DOUBLE)) <= (ABS("t2"."c0"))) OR (NOT (CAST('1e-150' AS DOUBLE)) IS NULL AND IS_NAN((ABS("t2"."c0")))))), "t2"."c0", (CAST('0.0' AS DOUBLE))) ELSE NULL END, (CAST('0.0' AS DOUBLE))))) AS "v0" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- (whole / whole)
SELECT * FROM (SELECT ((CAST("t2"."c0" AS DOUBLE)) / (NULLIF(CAST("t2"."c0" AS DOUBLE), (CAST('0.0' AS DOUBLE))))) AS "v0" FROM (SELECT "t1"."whole" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- (whole // whole)
SELECT * FROM (SELECT IF("t2"."c0" = -1, (TRY((CAST(0 AS BIGINT)) - "t2"."c0")), ("t2"."c0" / NULLIF((CASE WHEN "t2"."c0" > 0 THEN "t2"."c0" WHEN "t2"."c0" < -1 THEN "t2"."c0" ELSE NULL END), 0))) AS "v0" FROM (SELECT "t1"."whole" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- (whole % whole)
SELECT * FROM (SELECT IF("t2"."c0" = -1, CASE WHEN NOT "t2"."c0" IS NULL THEN CAST(0 AS BIGINT) ELSE NULL END, ("t2"."c0" % NULLIF((CASE WHEN "t2"."c0" > 0 THEN "t2"."c0" WHEN "t2"."c0" < -1 THEN "t2"."c0" ELSE NULL END), 0))) AS "v0" FROM (SELECT "t1"."whole" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- abs(real)
SELECT * FROM (SELECT ABS(CASE WHEN ((((ABS("t2"."c0")) <= (CAST('1e+150' AS DOUBLE))) OR (NOT (ABS("t2"."c0")) IS NULL AND IS_NAN((CAST('1e+150' AS DOUBLE)))))) THEN IF(((((CAST('1e-150' AS DOUBLE)) <= (ABS("t2"."c0"))) OR (NOT (CAST('1e-150' AS DOUBLE)) IS NULL AND IS_NAN((ABS("t2"."c0")))))), "t2"."c0", (CAST('0.0' AS DOUBLE))) ELSE NULL END) AS "v0" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- abs(whole)
SELECT * FROM (SELECT CASE WHEN "t1"."whole" >= 0 THEN "t1"."whole" WHEN "t1"."whole" > -9223372036854775808 THEN -("t1"."whole") ELSE NULL END AS "v0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS answer;

-- sign(real)
SELECT * FROM (SELECT CASE WHEN ((((CAST('0.0' AS DOUBLE)) < "t3"."e0_0") OR (NOT IS_NAN((CAST('0.0' AS DOUBLE))) AND IS_NAN("t3"."e0_0")))) THEN (CAST('1.0' AS DOUBLE)) WHEN ((("t3"."e0_0" < (CAST('0.0' AS DOUBLE))) OR (NOT IS_NAN("t3"."e0_0") AND IS_NAN((CAST('0.0' AS DOUBLE)))))) THEN (CAST('-1.0' AS DOUBLE)) WHEN ((("t3"."e0_0" = (CAST('0.0' AS DOUBLE))) OR (IS_NAN("t3"."e0_0") AND IS_NAN((CAST('0.0' AS DOUBLE)))))) THEN (CAST('0.0' AS DOUBLE)) ELSE NULL END AS "v0" FROM (SELECT "t2"."c0", CASE WHEN ((((ABS("t2"."c0")) <= (CAST('1e+150' AS DOUBLE))) OR (NOT (ABS("t2"."c0")) IS NULL AND IS_NAN((CAST('1e+150' AS DOUBLE)))))) THEN IF(((((CAST('1e-150' AS DOUBLE)) <= (ABS("t2"."c0"))) OR (NOT (CAST('1e-150' AS DOUBLE)) IS NULL AND IS_NAN((ABS("t2"."c0")))))), "t2"."c0", (CAST('0.0' AS DOUBLE))) ELSE NULL END AS "e0_0", TRUE AS "fence" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS "t3") AS answer;

-- sign(whole)
SELECT * FROM (SELECT CASE WHEN "t1"."whole" > CAST(0 AS BIGINT) THEN CAST(1 AS BIGINT) WHEN "t1"."whole" < CAST(0 AS BIGINT) THEN CAST(-1 AS BIGINT) WHEN "t1"."whole" = CAST(0 AS BIGINT) THEN CAST(0 AS BIGINT) ELSE NULL END AS "v0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS answer;

-- floor(real)
SELECT * FROM (SELECT (FLOOR("t3"."e0_0")) AS "v0" FROM (SELECT "t2"."c0", CASE WHEN ((((ABS("t2"."c0")) <= (CAST('1e+150' AS DOUBLE))) OR (NOT (ABS("t2"."c0")) IS NULL AND IS_NAN((CAST('1e+150' AS DOUBLE)))))) THEN IF(((((CAST('1e-150' AS DOUBLE)) <= (ABS("t2"."c0"))) OR (NOT (CAST('1e-150' AS DOUBLE)) IS NULL AND IS_NAN((ABS("t2"."c0")))))), "t2"."c0", (CAST('0.0' AS DOUBLE))) ELSE NULL END AS "e0_0", TRUE AS "fence" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS "t3") AS answer;

-- floor(whole)
SELECT * FROM (SELECT "t1"."whole" AS "v0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS answer;

-- ceil(real)
SELECT * FROM (SELECT (CEIL("t3"."e0_0")) AS "v0" FROM (SELECT "t2"."c0", CASE WHEN ((((ABS("t2"."c0")) <= (CAST('1e+150' AS DOUBLE))) OR (NOT (ABS("t2"."c0")) IS NULL AND IS_NAN((CAST('1e+150' AS DOUBLE)))))) THEN IF(((((CAST('1e-150' AS DOUBLE)) <= (ABS("t2"."c0"))) OR (NOT (CAST('1e-150' AS DOUBLE)) IS NULL AND IS_NAN((ABS("t2"."c0")))))), "t2"."c0", (CAST('0.0' AS DOUBLE))) ELSE NULL END AS "e0_0", TRUE AS "fence" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS "t3") AS answer;

-- ceil(whole)
SELECT * FROM (SELECT "t1"."whole" AS "v0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS answer;

-- round(real, 2)
SELECT * FROM (SELECT (((TRUNCATE(("t3"."e0_0" * (CAST('100.0' AS DOUBLE))))) + IF(((((CAST('0.5' AS DOUBLE)) <= (ABS(("t3"."e0_0" * (CAST('100.0' AS DOUBLE))) - (TRUNCATE(("t3"."e0_0" * (CAST('100.0' AS DOUBLE)))))))) OR (NOT (CAST('0.5' AS DOUBLE)) IS NULL AND IS_NAN((ABS(("t3"."e0_0" * (CAST('100.0' AS DOUBLE))) - (TRUNCATE(("t3"."e0_0" * (CAST('100.0' AS DOUBLE))))))))))), CASE WHEN ((((CAST('0.0' AS DOUBLE)) < ("t3"."e0_0" * (CAST('100.0' AS DOUBLE)))) OR (NOT IS_NAN((CAST('0.0' AS DOUBLE))) AND IS_NAN(("t3"."e0_0" * (CAST('100.0' AS DOUBLE))))))) THEN (CAST('1.0' AS DOUBLE)) WHEN (((("t3"."e0_0" * (CAST('100.0' AS DOUBLE))) < (CAST('0.0' AS DOUBLE))) OR (NOT IS_NAN(("t3"."e0_0" * (CAST('100.0' AS DOUBLE)))) AND IS_NAN((CAST('0.0' AS DOUBLE)))))) THEN (CAST('-1.0' AS DOUBLE)) WHEN (((("t3"."e0_0" * (CAST('100.0' AS DOUBLE))) = (CAST('0.0' AS DOUBLE))) OR (IS_NAN(("t3"."e0_0" * (CAST('100.0' AS DOUBLE)))) AND IS_NAN((CAST('0.0' AS DOUBLE)))))) THEN (CAST('0.0' AS DOUBLE)) ELSE NULL END, (CAST('0.0' AS DOUBLE)))) / (CAST('100.0' AS DOUBLE))) AS "v0" FROM (SELECT "t2"."c0", CASE WHEN ((((ABS("t2"."c0")) <= (CAST('1e+150' AS DOUBLE))) OR (NOT (ABS("t2"."c0")) IS NULL AND IS_NAN((CAST('1e+150' AS DOUBLE)))))) THEN IF(((((CAST('1e-150' AS DOUBLE)) <= (ABS("t2"."c0"))) OR (NOT (CAST('1e-150' AS DOUBLE)) IS NULL AND IS_NAN((ABS("t2"."c0")))))), "t2"."c0", (CAST('0.0' AS DOUBLE))) ELSE NULL END AS "e0_0", TRUE AS "fence" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS "t3") AS answer;

-- round(whole, 2)
SELECT * FROM (SELECT "t1"."whole" AS "v0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS answer;

-- trunc(real)
SELECT * FROM (SELECT (TRUNCATE("t3"."e0_0")) AS "v0" FROM (SELECT "t2"."c0", CASE WHEN ((((ABS("t2"."c0")) <= (CAST('1e+150' AS DOUBLE))) OR (NOT (ABS("t2"."c0")) IS NULL AND IS_NAN((CAST('1e+150' AS DOUBLE)))))) THEN IF(((((CAST('1e-150' AS DOUBLE)) <= (ABS("t2"."c0"))) OR (NOT (CAST('1e-150' AS DOUBLE)) IS NULL AND IS_NAN((ABS("t2"."c0")))))), "t2"."c0", (CAST('0.0' AS DOUBLE))) ELSE NULL END AS "e0_0", TRUE AS "fence" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS "t3") AS answer;

-- trunc(whole)
SELECT * FROM (SELECT "t1"."whole" AS "v0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS answer;

-- sqrt(real)
SELECT * FROM (SELECT (SQRT((CASE WHEN ((((CAST('0.0' AS DOUBLE)) <= "t3"."e0_0") OR (NOT (CAST('0.0' AS DOUBLE)) IS NULL AND IS_NAN("t3"."e0_0")))) THEN "t3"."e0_0" ELSE NULL END))) AS "v0" FROM (SELECT "t2"."c0", CASE WHEN ((((ABS("t2"."c0")) <= (CAST('1e+150' AS DOUBLE))) OR (NOT (ABS("t2"."c0")) IS NULL AND IS_NAN((CAST('1e+150' AS DOUBLE)))))) THEN IF(((((CAST('1e-150' AS DOUBLE)) <= (ABS("t2"."c0"))) OR (NOT (CAST('1e-150' AS DOUBLE)) IS NULL AND IS_NAN((ABS("t2"."c0")))))), "t2"."c0", (CAST('0.0' AS DOUBLE))) ELSE NULL END AS "e0_0", TRUE AS "fence" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS "t3") AS answer;

-- sqrt(whole)
SELECT * FROM (SELECT (SQRT((CASE WHEN ((((CAST('0.0' AS DOUBLE)) <= (CAST("t2"."c0" AS DOUBLE))) OR (NOT (CAST('0.0' AS DOUBLE)) IS NULL AND IS_NAN((CAST("t2"."c0" AS DOUBLE)))))) THEN CAST("t2"."c0" AS DOUBLE) ELSE NULL END))) AS "v0" FROM (SELECT "t1"."whole" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- exp(real)
SELECT * FROM (SELECT IF(((("t3"."e0_0" < (CAST('-345.0' AS DOUBLE))) OR (NOT IS_NAN("t3"."e0_0") AND IS_NAN((CAST('-345.0' AS DOUBLE)))))), (CAST('0.0' AS DOUBLE)), (EXP((CASE WHEN ((((ABS("t3"."e0_0")) <= (CAST('345.0' AS DOUBLE))) OR (NOT (ABS("t3"."e0_0")) IS NULL AND IS_NAN((CAST('345.0' AS DOUBLE)))))) THEN "t3"."e0_0" ELSE NULL END)))) AS "v0" FROM (SELECT "t2"."c0", CASE WHEN ((((ABS("t2"."c0")) <= (CAST('1e+150' AS DOUBLE))) OR (NOT (ABS("t2"."c0")) IS NULL AND IS_NAN((CAST('1e+150' AS DOUBLE)))))) THEN IF(((((CAST('1e-150' AS DOUBLE)) <= (ABS("t2"."c0"))) OR (NOT (CAST('1e-150' AS DOUBLE)) IS NULL AND IS_NAN((ABS("t2"."c0")))))), "t2"."c0", (CAST('0.0' AS DOUBLE))) ELSE NULL END AS "e0_0", TRUE AS "fence" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS "t3") AS answer;

-- exp(whole)
SELECT * FROM (SELECT IF(((((CAST("t2"."c0" AS DOUBLE)) < (CAST('-345.0' AS DOUBLE))) OR (NOT IS_NAN((CAST("t2"."c0" AS DOUBLE))) AND IS_NAN((CAST('-345.0' AS DOUBLE)))))), (CAST('0.0' AS DOUBLE)), (EXP((CASE WHEN ((((ABS(CAST("t2"."c0" AS DOUBLE))) <= (CAST('345.0' AS DOUBLE))) OR (NOT (ABS(CAST("t2"."c0" AS DOUBLE))) IS NULL AND IS_NAN((CAST('345.0' AS DOUBLE)))))) THEN CAST("t2"."c0" AS DOUBLE) ELSE NULL END)))) AS "v0" FROM (SELECT "t1"."whole" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- ln(real)
SELECT * FROM (SELECT (LN((CASE WHEN ((((CAST('0.0' AS DOUBLE)) < "t3"."e0_0") OR (NOT IS_NAN((CAST('0.0' AS DOUBLE))) AND IS_NAN("t3"."e0_0")))) THEN "t3"."e0_0" ELSE NULL END))) AS "v0" FROM (SELECT "t2"."c0", CASE WHEN ((((ABS("t2"."c0")) <= (CAST('1e+150' AS DOUBLE))) OR (NOT (ABS("t2"."c0")) IS NULL AND IS_NAN((CAST('1e+150' AS DOUBLE)))))) THEN IF(((((CAST('1e-150' AS DOUBLE)) <= (ABS("t2"."c0"))) OR (NOT (CAST('1e-150' AS DOUBLE)) IS NULL AND IS_NAN((ABS("t2"."c0")))))), "t2"."c0", (CAST('0.0' AS DOUBLE))) ELSE NULL END AS "e0_0", TRUE AS "fence" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS "t3") AS answer;

-- ln(whole)
SELECT * FROM (SELECT (LN((CASE WHEN ((((CAST('0.0' AS DOUBLE)) < (CAST("t2"."c0" AS DOUBLE))) OR (NOT IS_NAN((CAST('0.0' AS DOUBLE))) AND IS_NAN((CAST("t2"."c0" AS DOUBLE)))))) THEN CAST("t2"."c0" AS DOUBLE) ELSE NULL END))) AS "v0" FROM (SELECT "t1"."whole" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- log10(real)
SELECT * FROM (SELECT (LOG(10, (CASE WHEN ((((CAST('0.0' AS DOUBLE)) < "t3"."e0_0") OR (NOT IS_NAN((CAST('0.0' AS DOUBLE))) AND IS_NAN("t3"."e0_0")))) THEN "t3"."e0_0" ELSE NULL END))) AS "v0" FROM (SELECT "t2"."c0", CASE WHEN ((((ABS("t2"."c0")) <= (CAST('1e+150' AS DOUBLE))) OR (NOT (ABS("t2"."c0")) IS NULL AND IS_NAN((CAST('1e+150' AS DOUBLE)))))) THEN IF(((((CAST('1e-150' AS DOUBLE)) <= (ABS("t2"."c0"))) OR (NOT (CAST('1e-150' AS DOUBLE)) IS NULL AND IS_NAN((ABS("t2"."c0")))))), "t2"."c0", (CAST('0.0' AS DOUBLE))) ELSE NULL END AS "e0_0", TRUE AS "fence" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS "t3") AS answer;

-- log10(whole)
SELECT * FROM (SELECT (LOG(10, (CASE WHEN ((((CAST('0.0' AS DOUBLE)) < (CAST("t2"."c0" AS DOUBLE))) OR (NOT IS_NAN((CAST('0.0' AS DOUBLE))) AND IS_NAN((CAST("t2"."c0" AS DOUBLE)))))) THEN CAST("t2"."c0" AS DOUBLE) ELSE NULL END))) AS "v0" FROM (SELECT "t1"."whole" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- power(real, real)
SELECT * FROM (SELECT CASE WHEN ((("t3"."e0_0" = (CAST('0.0' AS DOUBLE))) OR (IS_NAN("t3"."e0_0") AND IS_NAN((CAST('0.0' AS DOUBLE)))))) THEN IF("t3"."e0_0" IS NULL, CAST(NULL AS DOUBLE), (CAST('1.0' AS DOUBLE))) WHEN ((("t3"."e0_0" = (CAST('0.0' AS DOUBLE))) OR (IS_NAN("t3"."e0_0") AND IS_NAN((CAST('0.0' AS DOUBLE)))))) THEN CASE WHEN ((((CAST('0.0' AS DOUBLE)) < "t3"."e0_0") OR (NOT IS_NAN((CAST('0.0' AS DOUBLE))) AND IS_NAN("t3"."e0_0")))) THEN (CAST('0.0' AS DOUBLE)) ELSE NULL END ELSE (POWER((CASE WHEN (((((CAST('0.0' AS DOUBLE)) < "t3"."e0_0") OR (NOT IS_NAN((CAST('0.0' AS DOUBLE))) AND IS_NAN("t3"."e0_0")))) OR ((("t3"."e0_0" = (TRUNCATE("t3"."e0_0"))) OR (IS_NAN("t3"."e0_0") AND IS_NAN((TRUNCATE("t3"."e0_0"))))))) AND ((((ABS("t3"."e0_0" * (LN((NULLIF(ABS("t3"."e0_0"), (CAST('0.0' AS DOUBLE)))))))) <= (CAST('345.0' AS DOUBLE))) OR (NOT (ABS("t3"."e0_0" * (LN((NULLIF(ABS("t3"."e0_0"), (CAST('0.0' AS DOUBLE)))))))) IS NULL AND IS_NAN((CAST('345.0' AS DOUBLE)))))) THEN "t3"."e0_0" ELSE NULL END), (CASE WHEN ((((ABS("t3"."e0_0" * (LN((NULLIF(ABS("t3"."e0_0"), (CAST('0.0' AS DOUBLE)))))))) <= (CAST('345.0' AS DOUBLE))) OR (NOT (ABS("t3"."e0_0" * (LN((NULLIF(ABS("t3"."e0_0"), (CAST('0.0' AS DOUBLE)))))))) IS NULL AND IS_NAN((CAST('345.0' AS DOUBLE)))))) THEN "t3"."e0_0" ELSE NULL END))) END AS "v0" FROM (SELECT "t2"."c0", CASE WHEN ((((ABS("t2"."c0")) <= (CAST('1e+150' AS DOUBLE))) OR (NOT (ABS("t2"."c0")) IS NULL AND IS_NAN((CAST('1e+150' AS DOUBLE)))))) THEN IF(((((CAST('1e-150' AS DOUBLE)) <= (ABS("t2"."c0"))) OR (NOT (CAST('1e-150' AS DOUBLE)) IS NULL AND IS_NAN((ABS("t2"."c0")))))), "t2"."c0", (CAST('0.0' AS DOUBLE))) ELSE NULL END AS "e0_0", TRUE AS "fence" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS "t3") AS answer;

-- power(whole, whole)
SELECT * FROM (SELECT "t3"."e0_0" AS "v0" FROM (SELECT "t2"."c0", CASE WHEN ((((CAST("t2"."c0" AS DOUBLE)) = (CAST('0.0' AS DOUBLE))) OR (IS_NAN((CAST("t2"."c0" AS DOUBLE))) AND IS_NAN((CAST('0.0' AS DOUBLE)))))) THEN IF(CAST("t2"."c0" AS DOUBLE) IS NULL, CAST(NULL AS DOUBLE), (CAST('1.0' AS DOUBLE))) WHEN ((((CAST("t2"."c0" AS DOUBLE)) = (CAST('0.0' AS DOUBLE))) OR (IS_NAN((CAST("t2"."c0" AS DOUBLE))) AND IS_NAN((CAST('0.0' AS DOUBLE)))))) THEN CASE WHEN ((((CAST('0.0' AS DOUBLE)) < (CAST("t2"."c0" AS DOUBLE))) OR (NOT IS_NAN((CAST('0.0' AS DOUBLE))) AND IS_NAN((CAST("t2"."c0" AS DOUBLE)))))) THEN (CAST('0.0' AS DOUBLE)) ELSE NULL END ELSE (POWER((CASE WHEN (((((CAST('0.0' AS DOUBLE)) < (CAST("t2"."c0" AS DOUBLE))) OR (NOT IS_NAN((CAST('0.0' AS DOUBLE))) AND IS_NAN((CAST("t2"."c0" AS DOUBLE)))))) OR ((((CAST("t2"."c0" AS DOUBLE)) = (TRUNCATE((CAST("t2"."c0" AS DOUBLE))))) OR (IS_NAN((CAST("t2"."c0" AS DOUBLE))) AND IS_NAN((TRUNCATE((CAST("t2"."c0" AS DOUBLE))))))))) AND ((((ABS(CAST("t2"."c0" AS DOUBLE) * (LN((NULLIF(ABS(CAST("t2"."c0" AS DOUBLE)), (CAST('0.0' AS DOUBLE)))))))) <= (CAST('345.0' AS DOUBLE))) OR (NOT (ABS(CAST("t2"."c0" AS DOUBLE) * (LN((NULLIF(ABS(CAST("t2"."c0" AS DOUBLE)), (CAST('0.0' AS DOUBLE)))))))) IS NULL AND IS_NAN((CAST('345.0' AS DOUBLE)))))) THEN CAST("t2"."c0" AS DOUBLE) ELSE NULL END), (CASE WHEN ((((ABS(CAST("t2"."c0" AS DOUBLE) * (LN((NULLIF(ABS(CAST("t2"."c0" AS DOUBLE)), (CAST('0.0' AS DOUBLE)))))))) <= (CAST('345.0' AS DOUBLE))) OR (NOT (ABS(CAST("t2"."c0" AS DOUBLE) * (LN((NULLIF(ABS(CAST("t2"."c0" AS DOUBLE)), (CAST('0.0' AS DOUBLE)))))))) IS NULL AND IS_NAN((CAST('345.0' AS DOUBLE)))))) THEN CAST("t2"."c0" AS DOUBLE) ELSE NULL END))) END AS "e0_0", TRUE AS "fence" FROM (SELECT "t1"."whole" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS "t3") AS answer;

-- least(day, day)
SELECT * FROM (SELECT (CASE WHEN "t2"."c0" IS NULL OR "t2"."c0" < "t2"."c0" THEN "t2"."c0" ELSE "t2"."c0" END) AS "v0" FROM (SELECT (CASE WHEN "t1"."day" BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN "t1"."day" END) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- least(moment, moment)
SELECT * FROM (SELECT (CASE WHEN "t2"."c0" IS NULL OR "t2"."c0" < "t2"."c0" THEN "t2"."c0" ELSE "t2"."c0" END) AS "v0" FROM (SELECT (CASE WHEN CAST("t1"."moment" AS TIMESTAMP(6)) BETWEEN CAST('0001-01-01 00:00:00.000000' AS TIMESTAMP(6)) AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP(6)) THEN CAST("t1"."moment" AS TIMESTAMP(6)) END) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- least(real, real)
SELECT * FROM (SELECT (CASE WHEN "t2"."c0" IS NULL THEN "t2"."c0" WHEN "t2"."c0" IS NULL THEN "t2"."c0" WHEN (("t2"."c0" <= "t2"."c0") OR (NOT "t2"."c0" IS NULL AND IS_NAN("t2"."c0"))) THEN "t2"."c0" ELSE "t2"."c0" END) AS "v0" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- least(whole, whole)
SELECT * FROM (SELECT (CASE WHEN "t2"."c0" IS NULL OR "t2"."c0" < "t2"."c0" THEN "t2"."c0" ELSE "t2"."c0" END) AS "v0" FROM (SELECT "t1"."whole" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- least(word, word)
SELECT * FROM (SELECT CASE WHEN "t1"."word" IS NULL THEN "t1"."word" WHEN "t1"."word" <= "t1"."word" THEN "t1"."word" ELSE "t1"."word" END AS "v0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS answer;

-- greatest(day, day)
SELECT * FROM (SELECT (CASE WHEN "t2"."c0" IS NULL OR "t2"."c0" > "t2"."c0" THEN "t2"."c0" ELSE "t2"."c0" END) AS "v0" FROM (SELECT (CASE WHEN "t1"."day" BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN "t1"."day" END) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- greatest(moment, moment)
SELECT * FROM (SELECT (CASE WHEN "t2"."c0" IS NULL OR "t2"."c0" > "t2"."c0" THEN "t2"."c0" ELSE "t2"."c0" END) AS "v0" FROM (SELECT (CASE WHEN CAST("t1"."moment" AS TIMESTAMP(6)) BETWEEN CAST('0001-01-01 00:00:00.000000' AS TIMESTAMP(6)) AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP(6)) THEN CAST("t1"."moment" AS TIMESTAMP(6)) END) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- greatest(real, real)
SELECT * FROM (SELECT (CASE WHEN "t2"."c0" IS NULL THEN "t2"."c0" WHEN "t2"."c0" IS NULL THEN "t2"."c0" WHEN (("t2"."c0" <= "t2"."c0") OR (NOT "t2"."c0" IS NULL AND IS_NAN("t2"."c0"))) THEN "t2"."c0" ELSE "t2"."c0" END) AS "v0" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- greatest(whole, whole)
SELECT * FROM (SELECT (CASE WHEN "t2"."c0" IS NULL OR "t2"."c0" > "t2"."c0" THEN "t2"."c0" ELSE "t2"."c0" END) AS "v0" FROM (SELECT "t1"."whole" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- greatest(word, word)
SELECT * FROM (SELECT CASE WHEN "t1"."word" IS NULL THEN "t1"."word" WHEN "t1"."word" >= "t1"."word" THEN "t1"."word" ELSE "t1"."word" END AS "v0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS answer;

-- coalesce(day, day)
SELECT * FROM (SELECT COALESCE("t2"."c0", "t2"."c0") AS "v0" FROM (SELECT (CASE WHEN "t1"."day" BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN "t1"."day" END) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- coalesce(moment, moment)
SELECT * FROM (SELECT COALESCE("t2"."c0", "t2"."c0") AS "v0" FROM (SELECT (CASE WHEN CAST("t1"."moment" AS TIMESTAMP(6)) BETWEEN CAST('0001-01-01 00:00:00.000000' AS TIMESTAMP(6)) AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP(6)) THEN CAST("t1"."moment" AS TIMESTAMP(6)) END) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- coalesce(real, real)
SELECT * FROM (SELECT COALESCE("t2"."c0", "t2"."c0") AS "v0" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- coalesce(whole, whole)
SELECT * FROM (SELECT COALESCE("t1"."whole", "t1"."whole") AS "v0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS answer;

-- coalesce(word, word)
SELECT * FROM (SELECT COALESCE("t1"."word", "t1"."word") AS "v0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS answer;

-- coalesce(yes, yes)
SELECT * FROM (SELECT COALESCE("t1"."yes", "t1"."yes") AS "v0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS answer;

-- nullif(day, day)
SELECT * FROM (SELECT CASE WHEN NOT (COALESCE("t2"."c0" = "t2"."c0", FALSE)) THEN "t2"."c0" ELSE NULL END AS "v0" FROM (SELECT (CASE WHEN "t1"."day" BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN "t1"."day" END) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- nullif(moment, moment)
SELECT * FROM (SELECT CASE WHEN NOT (COALESCE("t2"."c0" = "t2"."c0", FALSE)) THEN "t2"."c0" ELSE NULL END AS "v0" FROM (SELECT (CASE WHEN CAST("t1"."moment" AS TIMESTAMP(6)) BETWEEN CAST('0001-01-01 00:00:00.000000' AS TIMESTAMP(6)) AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP(6)) THEN CAST("t1"."moment" AS TIMESTAMP(6)) END) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- nullif(real, real)
SELECT * FROM (SELECT CASE WHEN NOT (COALESCE(((("t2"."c0" = "t2"."c0") OR (IS_NAN("t2"."c0") AND IS_NAN("t2"."c0")))), FALSE)) THEN "t2"."c0" ELSE NULL END AS "v0" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- nullif(whole, whole)
SELECT * FROM (SELECT CASE WHEN NOT (COALESCE("t1"."whole" = "t1"."whole", FALSE)) THEN "t1"."whole" ELSE NULL END AS "v0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS answer;

-- nullif(word, word)
SELECT * FROM (SELECT CASE WHEN NOT (COALESCE("t1"."word" = "t1"."word", FALSE)) THEN "t1"."word" ELSE NULL END AS "v0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS answer;

-- nullif(yes, yes)
SELECT * FROM (SELECT CASE WHEN NOT (COALESCE("t1"."yes" = "t1"."yes", FALSE)) THEN "t1"."yes" ELSE NULL END AS "v0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS answer;

-- lower(word)
SELECT * FROM (SELECT (TRANSLATE("t2"."c0", 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')) AS "v0" FROM (SELECT "t1"."word" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- upper(word)
SELECT * FROM (SELECT (TRANSLATE("t2"."c0", 'abcdefghijklmnopqrstuvwxyz', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ')) AS "v0" FROM (SELECT "t1"."word" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- length(word)
SELECT * FROM (SELECT (LENGTH("t2"."c0")) AS "v0" FROM (SELECT "t1"."word" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- substring(word, whole)
SELECT * FROM (SELECT CASE WHEN NOT CAST(CASE WHEN "t2"."c1" >= 1 THEN IF("t2"."c1" < 1073741824, "t2"."c1", CAST(1073741824 AS BIGINT)) ELSE NULL END AS INTEGER) IS NULL THEN (SUBSTR("t2"."c0", (COALESCE(CAST(CASE WHEN "t2"."c1" >= 1 THEN IF("t2"."c1" < 1073741824, "t2"."c1", CAST(1073741824 AS BIGINT)) ELSE NULL END AS INTEGER), CAST(1 AS INTEGER))))) ELSE NULL END AS "v0" FROM (SELECT "t1"."word" AS "c0", "t1"."whole" AS "c1" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- trim(word)
SELECT * FROM (SELECT (TRIM(BOTH ' ' FROM "t2"."c0")) AS "v0" FROM (SELECT "t1"."word" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- ltrim(word)
SELECT * FROM (SELECT (TRIM(LEADING ' ' FROM "t2"."c0")) AS "v0" FROM (SELECT "t1"."word" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- rtrim(word)
SELECT * FROM (SELECT (TRIM(TRAILING ' ' FROM "t2"."c0")) AS "v0" FROM (SELECT "t1"."word" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- (word || word)
SELECT * FROM (SELECT CASE WHEN ((LENGTH("t2"."c0")) + (LENGTH("t2"."c0"))) <= 1048576 THEN CONCAT("t2"."c0", "t2"."c0") ELSE NULL END AS "v0" FROM (SELECT "t1"."word" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- replace(word, word, word)
SELECT * FROM (SELECT CASE WHEN ((LENGTH("t2"."c0")) * (CASE WHEN (LENGTH("t2"."c0")) IS NULL OR (CAST(1 AS BIGINT)) > (LENGTH("t2"."c0")) THEN (CAST(1 AS BIGINT)) ELSE (LENGTH("t2"."c0")) END)) <= 1048576 THEN (CASE WHEN "t2"."c0" = '' AND NOT "t2"."c0" IS NULL THEN "t2"."c0" ELSE REPLACE(CASE WHEN LENGTH("t2"."c0") * GREATEST(LENGTH("t2"."c0"), 1) <= 1048576 THEN "t2"."c0" END, "t2"."c0", "t2"."c0") END) ELSE NULL END AS "v0" FROM (SELECT "t1"."word" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- starts_with(word, word)
SELECT * FROM (SELECT (STARTS_WITH("t2"."c0", "t2"."c0")) AS "v0" FROM (SELECT "t1"."word" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- ends_with(word, word)
SELECT * FROM (SELECT (STARTS_WITH(REVERSE("t2"."c0"), REVERSE("t2"."c0"))) AS "v0" FROM (SELECT "t1"."word" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- contains(word, word)
SELECT * FROM (SELECT (("t2"."c0" = '' AND NOT "t2"."c0" IS NULL) OR STRPOS("t2"."c0", "t2"."c0") > 0) AS "v0" FROM (SELECT "t1"."word" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- like(word, 'a%')
SELECT * FROM (SELECT ("t2"."c0" LIKE 'a%' ESCAPE '\') AS "v0" FROM (SELECT "t1"."word" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- date_trunc('year', day)
SELECT * FROM (SELECT (DATE_TRUNC('YEAR', "t2"."c0")) AS "v0" FROM (SELECT (CASE WHEN "t1"."day" BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN "t1"."day" END) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- date_trunc('year', moment)
SELECT * FROM (SELECT (CAST((DATE_TRUNC('YEAR', (CAST("t2"."c0" AS DATE)))) AS TIMESTAMP(6))) AS "v0" FROM (SELECT (CASE WHEN CAST("t1"."moment" AS TIMESTAMP(6)) BETWEEN CAST('0001-01-01 00:00:00.000000' AS TIMESTAMP(6)) AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP(6)) THEN CAST("t1"."moment" AS TIMESTAMP(6)) END) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- extract('year', day)
SELECT * FROM (SELECT (YEAR("t2"."c0")) AS "v0" FROM (SELECT (CASE WHEN "t1"."day" BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN "t1"."day" END) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- extract('year', moment)
SELECT * FROM (SELECT (YEAR("t2"."c0")) AS "v0" FROM (SELECT (CASE WHEN CAST("t1"."moment" AS TIMESTAMP(6)) BETWEEN CAST('0001-01-01 00:00:00.000000' AS TIMESTAMP(6)) AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP(6)) THEN CAST("t1"."moment" AS TIMESTAMP(6)) END) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- days_between(day, day)
SELECT * FROM (SELECT (DATE_DIFF('DAY', "t2"."c0", "t2"."c0")) AS "v0" FROM (SELECT (CASE WHEN "t1"."day" BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN "t1"."day" END) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- days_between(moment, moment)
SELECT * FROM (SELECT (DATE_DIFF('DAY', (CAST("t2"."c0" AS DATE)), (CAST("t2"."c0" AS DATE)))) AS "v0" FROM (SELECT (CASE WHEN CAST("t1"."moment" AS TIMESTAMP(6)) BETWEEN CAST('0001-01-01 00:00:00.000000' AS TIMESTAMP(6)) AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP(6)) THEN CAST("t1"."moment" AS TIMESTAMP(6)) END) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- CAST(yes AS INTEGER)
SELECT * FROM (SELECT CASE WHEN "t1"."yes" THEN CAST(1 AS BIGINT) WHEN NOT ("t1"."yes") THEN CAST(0 AS BIGINT) ELSE NULL END AS "v0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS answer;

-- CAST(real AS INTEGER)
SELECT * FROM (SELECT (TRY_CAST(((TRUNCATE("t3"."e0_0")) + IF(((((CAST('0.5' AS DOUBLE)) <= (ABS("t3"."e0_0" - (TRUNCATE("t3"."e0_0"))))) OR (NOT (CAST('0.5' AS DOUBLE)) IS NULL AND IS_NAN((ABS("t3"."e0_0" - (TRUNCATE("t3"."e0_0")))))))), CASE WHEN ((((CAST('0.0' AS DOUBLE)) < "t3"."e0_0") OR (NOT IS_NAN((CAST('0.0' AS DOUBLE))) AND IS_NAN("t3"."e0_0")))) THEN (CAST('1.0' AS DOUBLE)) WHEN ((("t3"."e0_0" < (CAST('0.0' AS DOUBLE))) OR (NOT IS_NAN("t3"."e0_0") AND IS_NAN((CAST('0.0' AS DOUBLE)))))) THEN (CAST('-1.0' AS DOUBLE)) WHEN ((("t3"."e0_0" = (CAST('0.0' AS DOUBLE))) OR (IS_NAN("t3"."e0_0") AND IS_NAN((CAST('0.0' AS DOUBLE)))))) THEN (CAST('0.0' AS DOUBLE)) ELSE NULL END, (CAST('0.0' AS DOUBLE)))) AS BIGINT)) AS "v0" FROM (SELECT "t2"."c0", CASE WHEN ((((CAST('-9.223372036854776e+18' AS DOUBLE)) <= "t2"."c0") OR (NOT (CAST('-9.223372036854776e+18' AS DOUBLE)) IS NULL AND IS_NAN("t2"."c0")))) AND ((("t2"."c0" < (CAST('9.223372036854776e+18' AS DOUBLE))) OR (NOT IS_NAN("t2"."c0") AND IS_NAN((CAST('9.223372036854776e+18' AS DOUBLE)))))) THEN "t2"."c0" ELSE NULL END AS "e0_0", TRUE AS "fence" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS "t3") AS answer;

-- CAST(whole AS INTEGER)
SELECT * FROM (SELECT "t1"."whole" AS "v0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS answer;

-- CAST(word AS INTEGER)
SELECT * FROM (SELECT (TRY_CAST((CASE WHEN REGEXP_LIKE("t2"."c0", '^([+-]?[0-9]{1,18})\z') THEN "t2"."c0" END) AS BIGINT)) AS "v0" FROM (SELECT "t1"."word" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- CAST(real AS FLOAT)
SELECT * FROM (SELECT "t2"."c0" AS "v0" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- CAST(whole AS FLOAT)
SELECT * FROM (SELECT CAST("t1"."whole" AS DOUBLE) AS "v0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS answer;

-- CAST(word AS FLOAT)
SELECT * FROM (SELECT (TRY_CAST((CASE WHEN REGEXP_LIKE("t2"."c0", '^([+-]?([0-9]{1,15}|[0-9]{1}[.][0-9]{1,14}|[0-9]{2}[.][0-9]{1,13}|[0-9]{3}[.][0-9]{1,12}|[0-9]{4}[.][0-9]{1,11}|[0-9]{5}[.][0-9]{1,10}|[0-9]{6}[.][0-9]{1,9}|[0-9]{7}[.][0-9]{1,8}|[0-9]{8}[.][0-9]{1,7}|[0-9]{9}[.][0-9]{1,6}|[0-9]{10}[.][0-9]{1,5}|[0-9]{11}[.][0-9]{1,4}|[0-9]{12}[.][0-9]{1,3}|[0-9]{13}[.][0-9]{1,2}|[0-9]{14}[.][0-9]{1,1})([eE][+-]?[0-9]{1,2})?)\z') THEN "t2"."c0" END) AS DOUBLE)) AS "v0" FROM (SELECT "t1"."word" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- CAST(yes AS STRING)
SELECT * FROM (SELECT CASE WHEN "t1"."yes" THEN 'true' WHEN NOT ("t1"."yes") THEN 'false' ELSE NULL END AS "v0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS answer;

-- CAST(day AS STRING)
SELECT * FROM (SELECT (CAST("t2"."c0" AS VARCHAR)) AS "v0" FROM (SELECT (CASE WHEN "t1"."day" BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN "t1"."day" END) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- CAST(whole AS STRING)
SELECT * FROM (SELECT (CAST("t2"."c0" AS VARCHAR)) AS "v0" FROM (SELECT "t1"."whole" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- CAST(word AS STRING)
SELECT * FROM (SELECT "t1"."word" AS "v0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS answer;

-- CAST(moment AS STRING)
SELECT * FROM (SELECT (CASE WHEN STRPOS(CAST(CAST("t2"."c0" AS TIMESTAMP(6)) AS VARCHAR), '.') > 0 THEN TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM CAST(CAST("t2"."c0" AS TIMESTAMP(6)) AS VARCHAR))) ELSE CAST(CAST("t2"."c0" AS TIMESTAMP(6)) AS VARCHAR) END) AS "v0" FROM (SELECT (CASE WHEN CAST("t1"."moment" AS TIMESTAMP(6)) BETWEEN CAST('0001-01-01 00:00:00.000000' AS TIMESTAMP(6)) AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP(6)) THEN CAST("t1"."moment" AS TIMESTAMP(6)) END) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- CAST(yes AS BOOLEAN)
SELECT * FROM (SELECT "t1"."yes" AS "v0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS answer;

-- CAST(word AS BOOLEAN)
SELECT * FROM (SELECT CASE WHEN "t1"."word" = 'true' THEN TRUE WHEN "t1"."word" = 'false' THEN FALSE ELSE NULL END AS "v0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS answer;

-- CAST(day AS DATE)
SELECT * FROM (SELECT "t2"."c0" AS "v0" FROM (SELECT (CASE WHEN "t1"."day" BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN "t1"."day" END) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- CAST(word AS DATE)
SELECT * FROM (SELECT (TRY_CAST((CASE WHEN REGEXP_LIKE("t2"."c0", '^((([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29))\z') THEN "t2"."c0" END) AS DATE)) AS "v0" FROM (SELECT "t1"."word" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- CAST(moment AS DATE)
SELECT * FROM (SELECT (CAST("t2"."c0" AS DATE)) AS "v0" FROM (SELECT (CASE WHEN CAST("t1"."moment" AS TIMESTAMP(6)) BETWEEN CAST('0001-01-01 00:00:00.000000' AS TIMESTAMP(6)) AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP(6)) THEN CAST("t1"."moment" AS TIMESTAMP(6)) END) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- CAST(day AS TIMESTAMP)
SELECT * FROM (SELECT (CAST("t2"."c0" AS TIMESTAMP(6))) AS "v0" FROM (SELECT (CASE WHEN "t1"."day" BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN "t1"."day" END) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- CAST(word AS TIMESTAMP)
SELECT * FROM (SELECT (TRY_CAST(REPLACE((CASE WHEN REGEXP_LIKE("t2"."c0", '^((([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29)[ T]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?)\z') THEN "t2"."c0" END), 'T', ' ') AS TIMESTAMP(6))) AS "v0" FROM (SELECT "t1"."word" AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- CAST(moment AS TIMESTAMP)
SELECT * FROM (SELECT "t2"."c0" AS "v0" FROM (SELECT (CASE WHEN CAST("t1"."moment" AS TIMESTAMP(6)) BETWEEN CAST('0001-01-01 00:00:00.000000' AS TIMESTAMP(6)) AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP(6)) THEN CAST("t1"."moment" AS TIMESTAMP(6)) END) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- real = 0.5
SELECT * FROM (SELECT ((("t2"."c0" = (CAST('0.5' AS DOUBLE))) OR (IS_NAN("t2"."c0") AND IS_NAN((CAST('0.5' AS DOUBLE)))))) AS "v0" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- real <> 0.5
SELECT * FROM (SELECT (NOT (("t2"."c0" = (CAST('0.5' AS DOUBLE))) OR (IS_NAN("t2"."c0") AND IS_NAN((CAST('0.5' AS DOUBLE)))))) AS "v0" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- real < 0.5
SELECT * FROM (SELECT ((("t2"."c0" < (CAST('0.5' AS DOUBLE))) OR (NOT IS_NAN("t2"."c0") AND IS_NAN((CAST('0.5' AS DOUBLE)))))) AS "v0" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- real <= 0.5
SELECT * FROM (SELECT ((("t2"."c0" <= (CAST('0.5' AS DOUBLE))) OR (NOT "t2"."c0" IS NULL AND IS_NAN((CAST('0.5' AS DOUBLE)))))) AS "v0" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- real > 0.5
SELECT * FROM (SELECT ((((CAST('0.5' AS DOUBLE)) < "t2"."c0") OR (NOT IS_NAN((CAST('0.5' AS DOUBLE))) AND IS_NAN("t2"."c0")))) AS "v0" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

-- real >= 0.5
SELECT * FROM (SELECT ((((CAST('0.5' AS DOUBLE)) <= "t2"."c0") OR (NOT (CAST('0.5' AS DOUBLE)) IS NULL AND IS_NAN("t2"."c0")))) AS "v0" FROM (SELECT (CAST("t1"."real" AS DOUBLE) + CAST('0' AS DOUBLE)) AS "c0" FROM (SELECT "t0"."real", "t0"."whole", (CAST("t0"."word" AS VARCHAR)) AS "word", "t0"."day", "t0"."moment", "t0"."yes" FROM "rides" AS "t0") AS "t1") AS "t2") AS answer;

