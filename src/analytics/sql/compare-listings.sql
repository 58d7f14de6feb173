-- Finds days of services on which service_days and usage_days differ.
SELECT day, primitive, service, provider, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(failed) AS BIGINT) AS failed, CAST(SUM(charged) AS BIGINT) AS charged, CAST(SUM(prompt) AS BIGINT) AS prompt, CAST(SUM(completion) AS BIGINT) AS completion, CAST(SUM(reasoning) AS BIGINT) AS reasoning, CAST(SUM(cached) AS BIGINT) AS cached
FROM (
  SELECT day, primitive, service, provider, requests, failed, charged, prompt, completion, reasoning, cached FROM service_days WHERE day >= $1
  UNION ALL
  SELECT day, primitive, service, provider, -requests, -failed, -charged, -prompt, -completion, -reasoning, -cached FROM usage_days WHERE day >= $1
) AS told
GROUP BY day, primitive, service, provider
HAVING SUM(requests) <> 0 OR SUM(failed) <> 0 OR SUM(charged) <> 0 OR SUM(prompt) <> 0 OR SUM(completion) <> 0 OR SUM(reasoning) <> 0 OR SUM(cached) <> 0
LIMIT 20
