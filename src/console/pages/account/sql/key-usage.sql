-- name: keyUsage
-- The charges of the newest $3 calls of account $1 since $2, by the budget of their keys (`<hash>:<period>`) and by UTC
-- day.
SELECT budget, day, CAST(SUM(charged) AS BIGINT) AS charged, COUNT(*) AS calls
FROM (
  SELECT COALESCE(budget, '') AS budget, created_at / 86400000 AS day, charged FROM locks
  WHERE account = $1 AND created_at >= $2 ORDER BY created_at DESC LIMIT $3
) AS lately
GROUP BY budget, day
