-- Finds days on which public_days and service_days differ.
SELECT day, development, primitive, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(failed) AS BIGINT) AS failed, CAST(SUM(charged) AS BIGINT) AS charged, CAST(SUM(prompt) AS BIGINT) AS prompt, CAST(SUM(completion) AS BIGINT) AS completion, CAST(SUM(reasoning) AS BIGINT) AS reasoning, CAST(SUM(cached) AS BIGINT) AS cached
FROM (
  SELECT day, development, primitive, requests, failed, charged, prompt, completion, reasoning, cached FROM public_days
  UNION ALL
  SELECT day, development, primitive, -requests, -failed, -charged, -prompt, -completion, -reasoning, -cached FROM service_days
) AS told
GROUP BY day, development, primitive
HAVING SUM(requests) <> 0 OR SUM(failed) <> 0 OR SUM(charged) <> 0 OR SUM(prompt) <> 0 OR SUM(completion) <> 0 OR SUM(reasoning) <> 0 OR SUM(cached) <> 0
LIMIT 20
