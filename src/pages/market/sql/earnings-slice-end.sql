-- The time at which the first call after the next $4 calls was settled. No row if fewer calls are left. The index alone
-- answers this.
SELECT resolved_at FROM locks
WHERE provider = $1 AND resolved_at >= $2 AND resolved_at < $3
ORDER BY resolved_at LIMIT 1 OFFSET $4
