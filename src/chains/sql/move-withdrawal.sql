-- Moves a withdrawal from state $2, so only one caller makes each step.
UPDATE withdrawals SET state = $3, reason = COALESCE($4, reason), updated_at = $5, next_look_at = $6 WHERE id = $1 AND state = $2 RETURNING id
