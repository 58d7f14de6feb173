-- $4 to $7: only this service, key, provider, primitive; empty for all. $8 to $12: 1 to group by day, service, key,
-- provider, primitive.
SELECT CASE WHEN $8 = 1 THEN day ELSE 0 END AS day, CASE WHEN $9 = 1 THEN service ELSE '' END AS service,
  CASE WHEN $10 = 1 THEN key ELSE '' END AS key, CASE WHEN $11 = 1 THEN provider ELSE '' END AS provider,
  CASE WHEN $12 = 1 THEN primitive ELSE '' END AS primitive,
  CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(failed) AS BIGINT) AS failed, CAST(SUM(charged) AS BIGINT) AS charged, CAST(SUM(prompt) AS BIGINT) AS prompt, CAST(SUM(completion) AS BIGINT) AS completion, CAST(SUM(reasoning) AS BIGINT) AS reasoning, CAST(SUM(cached) AS BIGINT) AS cached, CAST(SUM(images) AS BIGINT) AS images, CAST(SUM(seconds) AS BIGINT) AS seconds
FROM usage_days
WHERE account = $1 AND day BETWEEN $2 AND $3 AND ($4 = '' OR service = $4) AND ($5 = '' OR key = $5) AND ($6 = '' OR provider = $6)
  AND ($7 = '' OR primitive = $7)
GROUP BY 1, 2, 3, 4, 5
LIMIT $13
