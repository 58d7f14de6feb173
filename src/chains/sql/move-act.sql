-- Moves an act from state $2, so only one caller makes each step. The arrival of a refused move goes back into
-- suspense. An act that is done has no reason.
UPDATE treasury_acts SET state = $3, reason = CASE WHEN $3 = 'done' THEN NULL ELSE COALESCE($4, reason) END, arrived = COALESCE($5, arrived), deposit = CASE WHEN $3 = 'refused' THEN NULL ELSE deposit END, updated_at = $6 WHERE id = $1 AND state = $2 RETURNING id
