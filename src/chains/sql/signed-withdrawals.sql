SELECT id, network, account, source, address, amount, fee, handed_out, state, signed, transaction_id, height, reason, created_at, updated_at, looks
FROM withdrawals WHERE network = $1 AND state = 'signed' AND id > $2 ORDER BY id LIMIT 500
