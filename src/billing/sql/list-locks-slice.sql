-- Takes the calls of account $1 before position ($2, $3), newest first and not older than $4, and skips $5 of them.
-- Gives the position of the next call; no row if fewer calls are left.
SELECT created_at, id FROM locks
WHERE account = $1 AND created_at <= $2 AND (created_at < $2 OR id < $3) AND created_at >= $4
ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET $5
