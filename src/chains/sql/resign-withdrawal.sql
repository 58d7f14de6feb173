UPDATE withdrawals SET fee = fee + $6, signed = $3, transaction_id = $4, updated_at = $5 WHERE id = $1 AND state = 'signed' AND signed = $2 RETURNING id
