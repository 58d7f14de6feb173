-- $4: as in users-of-hidden-days. $5, $6: as in hidden-services, whose days are left out; 0 leaves none out.
SELECT primitive, service, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(charged) AS BIGINT) AS charged, CAST(SUM(prompt + completion) AS BIGINT) AS tokens
FROM service_days
WHERE day BETWEEN $1 AND $2 AND development <= $3 AND requests > 0 AND day NOT IN (SELECT CAST(value ->> 0 AS BIGINT) FROM json_each($4))
  AND ($6 = 0 OR (day, primitive, service) IN (
    SELECT day, primitive, service FROM usage_days WHERE day BETWEEN $1 AND $2 AND requests > 0 AND account <> $5
    GROUP BY day, primitive, service HAVING COUNT(DISTINCT account) >= $6
  ))
GROUP BY primitive, service
