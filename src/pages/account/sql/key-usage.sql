-- What the newest $3 calls of account $1 that began at $2 or later were charged, by their keys' budgets (`<hash>:<period>`) and UTC days.
SELECT budget, day, CAST(SUM(charged) AS BIGINT) AS charged, COUNT(*) AS calls
FROM (
  SELECT COALESCE(budget, '') AS budget, created_at / 86400000 AS day, charged FROM locks
  WHERE account = $1 AND created_at >= $2 ORDER BY created_at DESC LIMIT $3
) AS lately
GROUP BY budget, day
