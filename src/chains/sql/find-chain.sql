SELECT network, asset, treasury, opening, cursor, height, held, booked, compared_at, halted FROM chains WHERE network = $1
