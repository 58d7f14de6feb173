-- The new cursor continues at the old cursor for the previous treasury, and at the beginning for the new one.
UPDATE chains SET treasury = $4, previous = $3, previous_empty = 0, opening = $5, opening_id = $6, cursor = $7
WHERE network = $1 AND cursor = $2 AND treasury = $3 AND previous IS NULL RETURNING network
