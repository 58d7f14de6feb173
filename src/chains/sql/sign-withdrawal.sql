UPDATE withdrawals SET state = 'signed', fee = fee + $5, signed = $2, transaction_id = $3, updated_at = $4, next_look_at = $4
WHERE id = $1 AND state = 'queued' AND NOT EXISTS (SELECT 1 FROM chains WHERE chains.network = withdrawals.network AND chains.halted IS NOT NULL)
RETURNING id
