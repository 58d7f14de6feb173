-- The result counts only for its cursor, because later transfers may have come to the old treasury.
UPDATE chains SET previous_empty = $3 WHERE network = $1 AND cursor = $2 AND previous IS NOT NULL RETURNING network
