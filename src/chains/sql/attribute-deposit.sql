-- A deposit that is the arrival of a move can be given only to that move.
UPDATE deposits SET account = $2, updated_at = $3, next_look_at = $3
WHERE id = $1 AND account IS NULL AND state = 'final' AND ($2 = $4 OR NOT EXISTS (SELECT 1 FROM treasury_acts WHERE treasury_acts.deposit = deposits.id))
RETURNING id
