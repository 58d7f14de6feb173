SELECT primitive, service, provider, CAST(SUM(timed_tokens) AS BIGINT) AS tokens, CAST(SUM(timed_ms) AS BIGINT) AS ms FROM service_days
WHERE timed_ms > 0 AND day BETWEEN $1 AND $2
GROUP BY primitive, service, provider
