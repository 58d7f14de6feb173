-- $3: 1 to include calls of the development account.
SELECT day, primitive, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(failed) AS BIGINT) AS failed, CAST(SUM(charged) AS BIGINT) AS charged,
  CAST(SUM(prompt) AS BIGINT) AS prompt, CAST(SUM(completion) AS BIGINT) AS completion, CAST(SUM(reasoning) AS BIGINT) AS reasoning,
  CAST(SUM(cached) AS BIGINT) AS cached
FROM public_days WHERE day BETWEEN $1 AND $2 AND development <= $3
GROUP BY day, primitive
