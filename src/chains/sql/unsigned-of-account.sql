SELECT id, network, account, source, address, amount, fee, handed_out, state, signed, transaction_id, height, reason, created_at, updated_at, looks
FROM withdrawals WHERE source = $1 AND state IN ('debited', 'queued', 'returning') ORDER BY created_at DESC LIMIT 100
