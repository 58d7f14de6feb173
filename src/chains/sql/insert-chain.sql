INSERT INTO chains (network, asset, treasury, opening, cursor, height, previous) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (network) DO NOTHING RETURNING network
