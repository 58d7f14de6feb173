-- One row if account $1 has more than $3 calls that began at $2 or later.
SELECT 1 AS many FROM locks WHERE account = $1 AND created_at >= $2 ORDER BY created_at LIMIT 1 OFFSET $3
