SELECT id, network, account, payer, amount, payment, request, state, transaction_id, event, height, credited, reason, created_at, updated_at, looks
FROM deposits WHERE account = $1 AND (created_at < $2 OR (created_at = $2 AND id < $3)) ORDER BY created_at DESC, id DESC LIMIT $4
