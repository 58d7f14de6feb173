INSERT INTO service_times (service, primitive, day, development, provider, measure, bucket, calls)
SELECT r.value ->> 0, r.value ->> 1, CAST(r.value ->> 2 AS BIGINT), CAST(r.value ->> 3 AS BIGINT), r.value ->> 4, r.value ->> 5, CAST(r.value ->> 6 AS BIGINT), CAST(r.value ->> 7 AS BIGINT)
FROM json_each($1) AS r WHERE TRUE
ON CONFLICT (service, primitive, day, development, provider, measure, bucket) DO UPDATE SET calls = service_times.calls + excluded.calls
