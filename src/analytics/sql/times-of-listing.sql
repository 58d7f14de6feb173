SELECT provider, measure, bucket, CAST(SUM(calls) AS BIGINT) AS calls FROM service_times
WHERE service = $1 AND primitive = $2 AND day BETWEEN $3 AND $4
GROUP BY provider, measure, bucket
