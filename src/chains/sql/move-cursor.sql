UPDATE chains SET cursor = $3, height = $4 WHERE network = $1 AND cursor = $2 RETURNING network
