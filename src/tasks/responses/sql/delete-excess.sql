-- Deletes the responses of account $1 beyond its last used $2 bytes and $3 responses. $4: now.
DELETE FROM kept_responses WHERE account = $1 AND run_until IS NULL AND (held_until IS NULL OR held_until <= $4) AND id IN (
  SELECT id FROM (
    SELECT id, SUM(bytes) OVER (ORDER BY expires_at DESC, id) AS kept, ROW_NUMBER() OVER (ORDER BY expires_at DESC, id) AS place
    FROM kept_responses WHERE account = $1
  ) AS last_used WHERE kept > $2 OR place > $3
)
