SELECT primitive, task_id, service, account, run, offer_id, provider, context_id, state, notes, snapshot, created_at, updated_at, expires_at,
  calls, ended_at, ending, open, next_look_at, look_ms, claimed_until, gave_output, asked_at, sent_bytes
FROM tasks
WHERE account = $1 AND primitive = $2 AND (CAST($3 AS TEXT) IS NULL OR run = $3) AND (CAST($4 AS TEXT) IS NULL OR service = $4)
  AND (CAST($5 AS TEXT) IS NULL OR context_id = $5) AND (CAST($6 AS TEXT) IS NULL OR state = $6) AND updated_at >= $7
  AND (updated_at < $8 OR (updated_at = $8 AND (task_id, service) > ($9, $10)))
ORDER BY updated_at DESC, task_id, service LIMIT $11
