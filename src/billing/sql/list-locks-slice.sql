-- The place of the call that is $5 calls older than the newest of account $1 before the place ($2, $3), and not older than $4; no row where fewer are left.
SELECT created_at, id FROM locks
WHERE account = $1 AND created_at <= $2 AND (created_at < $2 OR id < $3) AND created_at >= $4
ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET $5
