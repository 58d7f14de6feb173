SELECT id, network, account, payer, amount, payment, request, state, transaction_id, event, height, credited, reason, created_at, updated_at, looks
FROM deposits WHERE account IS NULL AND state = 'final' AND NOT EXISTS (SELECT 1 FROM treasury_acts WHERE treasury_acts.deposit = deposits.id) AND (created_at < $1 OR (created_at = $1 AND id < $2)) ORDER BY created_at DESC, id DESC LIMIT $3
