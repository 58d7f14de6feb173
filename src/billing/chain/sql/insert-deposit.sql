INSERT INTO deposits (id, network, account, payer, amount, payment, request, state, created_at, updated_at, next_look_at, looks)
VALUES ($1, $2, $3, $4, $5, $6, $7, 'received', $8, $8, $9, 0)
ON CONFLICT (id) DO NOTHING
RETURNING id
