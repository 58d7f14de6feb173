-- The outer condition is checked again if another gateway has claimed the row meanwhile.
UPDATE withdrawals SET next_look_at = $2, looks = looks + 1
WHERE next_look_at <= $1 AND network = $4 AND id IN (SELECT due.id FROM withdrawals AS due WHERE due.next_look_at <= $1 AND due.network = $4 ORDER BY due.next_look_at LIMIT $3)
RETURNING id, network, account, source, address, amount, fee, handed_out, state, signed, transaction_id, height, reason, created_at, updated_at, looks
