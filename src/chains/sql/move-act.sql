-- One step of an act, for whoever finds it where the step begins.
UPDATE treasury_acts SET state = $3, reason = COALESCE($4, reason), arrived = COALESCE($5, arrived), updated_at = $6 WHERE id = $1 AND state = $2 RETURNING id
