-- Deletes what a response under way consists of, and hides it ($3: it has expired since then). $4: bytes of its row.
UPDATE kept_responses SET run = 'deleting', previous = NULL, input = '', response = '', bytes = CAST($4 AS BIGINT), expires_at = $3
WHERE id = $1 AND account = $2 AND run IN ('queued', 'in_progress', 'cancelling') RETURNING id
