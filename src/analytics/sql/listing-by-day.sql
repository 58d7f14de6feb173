SELECT day, provider, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(failed) AS BIGINT) AS failed, CAST(SUM(charged) AS BIGINT) AS charged,
  CAST(SUM(prompt) AS BIGINT) AS prompt, CAST(SUM(completion) AS BIGINT) AS completion, CAST(SUM(reasoning) AS BIGINT) AS reasoning,
  CAST(SUM(cached) AS BIGINT) AS cached, CAST(SUM(images) AS BIGINT) AS images, CAST(SUM(seconds) AS BIGINT) AS seconds,
  CAST(SUM(timed_tokens) AS BIGINT) AS timed_tokens, CAST(SUM(timed_ms) AS BIGINT) AS timed_ms
FROM service_days WHERE service = $1 AND primitive = $2 AND day BETWEEN $3 AND $4 AND development <= $5
GROUP BY day, provider
