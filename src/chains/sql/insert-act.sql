INSERT INTO treasury_acts (id, kind, network, amount, bearer, to_network, address, sender, fee_max, reference, state, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'requested', $11, $11)
ON CONFLICT DO NOTHING
RETURNING id
