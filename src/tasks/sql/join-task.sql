-- Locks the row until the end of the transaction, so that the task cannot end before the call is added.
UPDATE tasks SET
  calls = calls + $7,
  expires_at = CASE WHEN expires_at > $8 THEN expires_at ELSE $8 END,
  next_look_at = $9,
  look_ms = $10,
  sent_bytes = sent_bytes + $11
WHERE primitive = $1 AND task_id = $2 AND service = $3 AND account = $4 AND (CAST($5 AS TEXT) IS NULL OR run = $5) AND offer_id = $6 AND ended_at IS NULL
RETURNING expires_at
