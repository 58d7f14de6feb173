UPDATE withdrawals SET transaction_id = $2, height = $3, updated_at = $4 WHERE id = $1 AND state = 'signed' RETURNING id
