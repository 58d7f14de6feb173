UPDATE deposits SET transaction_id = $2, updated_at = $3 WHERE id = $1 AND state = 'received' RETURNING id
