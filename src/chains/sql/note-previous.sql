UPDATE chains SET previous_empty = 0 WHERE network = $1 RETURNING network
