SELECT network, asset, treasury, opening, cursor, height, held, booked, compared_at, halted FROM chains ORDER BY network
