SELECT network, asset, treasury, opening, cursor, height, held, booked, compared_at, halted, previous, previous_empty, opening_id FROM chains WHERE network = $1
