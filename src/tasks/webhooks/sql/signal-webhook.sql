-- Locks the row until the end of the transaction, so that positions are assigned one after the other.
UPDATE webhooks SET signal = signal + 1, due_at = coalesce(due_at, $2), expires_at = $3 WHERE id = $1
RETURNING signal
