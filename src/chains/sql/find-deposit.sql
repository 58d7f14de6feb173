SELECT id, network, account, payer, amount, payment, request, state, transaction_id, event, height, credited, reason, created_at, updated_at, looks
FROM deposits WHERE id = $1
