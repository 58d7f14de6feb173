-- One step of an act, for whoever finds it where the step begins. What has arrived for a move that was refused waits in suspense.
UPDATE treasury_acts SET state = $3, reason = COALESCE($4, reason), arrived = COALESCE($5, arrived), deposit = CASE WHEN $3 = 'refused' THEN NULL ELSE deposit END, updated_at = $6 WHERE id = $1 AND state = $2 RETURNING id
