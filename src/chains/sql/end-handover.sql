UPDATE chains SET previous = NULL, previous_empty = 0, cursor = $3 WHERE network = $1 AND cursor = $2 AND previous_empty = 1 RETURNING network
