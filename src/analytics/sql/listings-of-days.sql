-- $4: as in users-of-hidden-days. $5: the rows of hidden-services, a JSON object of arrays.
SELECT primitive, service, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(charged) AS BIGINT) AS charged, CAST(SUM(prompt + completion) AS BIGINT) AS tokens
FROM service_days
WHERE day BETWEEN $1 AND $2 AND development <= $3 AND requests > 0 AND day NOT IN (SELECT CAST(value ->> 0 AS BIGINT) FROM json_each($4))
  AND (day, primitive, service) NOT IN (SELECT CAST(value ->> 0 AS BIGINT), value ->> 1, value ->> 2 FROM json_each($5))
GROUP BY primitive, service
