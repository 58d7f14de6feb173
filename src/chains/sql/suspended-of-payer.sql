SELECT id, network, account, payer, amount, payment, request, state, transaction_id, event, height, credited, reason, created_at, updated_at, looks
FROM deposits WHERE account IS NULL AND state = 'final' AND payer = $1 ORDER BY created_at LIMIT $2
