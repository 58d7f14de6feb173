SELECT id, network, account, source, address, amount, fee, handed_out, state, signed, transaction_id, height, reason, created_at, updated_at, looks
FROM withdrawals WHERE source = $1 AND (created_at < $2 OR (created_at = $2 AND id < $3)) ORDER BY created_at DESC, id DESC LIMIT $4
