-- $4 is the call that used it before and was not charged; an id of nothing where there is none.
UPDATE quotes SET call_id = $2, used_at = $3 WHERE id = $1 AND (call_id IS NULL OR call_id = $4)
RETURNING id
