INSERT INTO withdrawals (id, network, account, source, address, amount, fee, handed_out, state, created_at, updated_at, next_look_at, looks)
VALUES ($1, $2, $3, $4, $5, $6, $10, $7, 'requested', $8, $8, $9, 0)
ON CONFLICT (id) DO NOTHING
RETURNING id
