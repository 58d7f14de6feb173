-- When the call after the next $4 was settled; no row when fewer are left. Answered from the index alone.
SELECT resolved_at FROM locks
WHERE provider = $1 AND resolved_at >= $2 AND resolved_at < $3
ORDER BY resolved_at LIMIT 1 OFFSET $4
