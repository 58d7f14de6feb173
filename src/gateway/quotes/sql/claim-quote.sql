-- $4 is the earlier call that used the quote and was not charged. It is an empty string if there is none.
UPDATE quotes SET call_id = $2, used_at = $3 WHERE id = $1 AND (call_id IS NULL OR call_id = $4)
RETURNING id
