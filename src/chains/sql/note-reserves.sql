UPDATE chains SET held = $2, booked = $3, compared_at = $4 WHERE network = $1 RETURNING network
