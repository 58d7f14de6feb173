SELECT id, network, account, payer, amount, payment, request, state, transaction_id, event, height, credited, reason, created_at, updated_at, looks
FROM deposits WHERE account IS NULL AND state = 'final' AND payer = $1 AND ($2 = '' OR network = $2) AND NOT EXISTS (SELECT 1 FROM treasury_acts WHERE treasury_acts.deposit = deposits.id) ORDER BY created_at LIMIT 100
