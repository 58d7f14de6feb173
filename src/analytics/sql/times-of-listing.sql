-- $3: a JSON object of arrays, each with one day. A list of days lets the index be used. $4: as in listing-by-day.
SELECT provider, measure, bucket, CAST(SUM(calls) AS BIGINT) AS calls FROM service_times
WHERE day IN (SELECT CAST(value ->> 0 AS BIGINT) FROM json_each($3)) AND service = $1 AND primitive = $2 AND development <= $4
GROUP BY provider, measure, bucket
