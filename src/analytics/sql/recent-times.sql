SELECT primitive, service, provider, bucket, CAST(SUM(calls) AS BIGINT) AS calls FROM service_times
WHERE measure = 'first_byte' AND day BETWEEN $1 AND $2
GROUP BY primitive, service, provider, bucket
