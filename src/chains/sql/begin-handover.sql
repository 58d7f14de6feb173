-- The treasury before is watched from where it was read to; the new one from where it begins.
UPDATE chains SET treasury = $4, previous = $3, previous_empty = 0, opening = $5, opening_id = $6, cursor = $7
WHERE network = $1 AND cursor = $2 AND treasury = $3 AND previous IS NULL RETURNING network
