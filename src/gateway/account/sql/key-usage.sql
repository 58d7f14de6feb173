-- What the calls of account $1 that began at $2 or later were charged, by their keys' budgets (`<hash>:<period>`) and UTC days.
SELECT budget, created_at / 86400000 AS day, CAST(SUM(charged) AS BIGINT) AS charged FROM locks
WHERE account = $1 AND created_at >= $2 AND budget IS NOT NULL
GROUP BY budget, created_at / 86400000
