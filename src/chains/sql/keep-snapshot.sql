INSERT INTO treasury_snapshots (network, treasury, cursor, height, balance) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (network, treasury, cursor) DO NOTHING
