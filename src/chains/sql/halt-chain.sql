UPDATE chains SET halted = $2 WHERE network = $1 RETURNING network
