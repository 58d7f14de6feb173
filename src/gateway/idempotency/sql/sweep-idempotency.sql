-- A charged call without a kept reply is remembered until $3, as long as a reply would have been.
DELETE FROM idempotency WHERE (account, key) IN (
  SELECT account, key FROM idempotency
  WHERE expires_at <= $1 AND (state = 'done' OR expires_at <= $3
    OR (NOT EXISTS (SELECT 1 FROM locks WHERE locks.id = idempotency.call_id AND ((locks.state = 'settled' AND locks.charged > 0) OR (locks.state = 'held' AND locks.kept = 1)))
      AND NOT EXISTS (SELECT 1 FROM locks WHERE locks.parent = idempotency.call_id AND locks.state = 'settled' AND locks.charged > 0)))
  ORDER BY expires_at LIMIT $2
)
RETURNING key
