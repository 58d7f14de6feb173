-- One step of a withdrawal, for whoever finds it where the step begins.
UPDATE withdrawals SET state = $3, reason = COALESCE($4, reason), updated_at = $5, next_look_at = $6 WHERE id = $1 AND state = $2 RETURNING id
