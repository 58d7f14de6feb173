-- As it was at a cursor: what was read since may have come to it.
UPDATE chains SET previous_empty = $3 WHERE network = $1 AND cursor = $2 AND previous IS NOT NULL RETURNING network
