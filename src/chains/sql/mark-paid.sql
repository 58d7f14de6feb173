UPDATE withdrawals SET state = 'paid', transaction_id = $2, height = $3, updated_at = $4, next_look_at = NULL WHERE id = $1 AND state = 'signed' RETURNING id
