-- name: callsResolvedIn
-- The next $4 calls after id $1 that were resolved from $2 to before $3. By the primary key, because no index has the
-- time of the resolution: a comparison of a month is rare, and an index would be written by every call.
SELECT id, state, charged, fee, usage, lock_detail, detail, resolved_at FROM locks
WHERE id > $1 AND resolved_at >= $2 AND resolved_at < $3
ORDER BY id LIMIT $4
