-- What is signed, and what was paid above a height: whoever has read the chain up to there has not seen it leave.
SELECT id, network, account, source, address, amount, fee, handed_out, state, signed, transaction_id, height, reason, created_at, updated_at, looks
FROM withdrawals WHERE network = $1 AND (state = 'signed' OR (state = 'paid' AND height > $2)) AND id > $3 ORDER BY id LIMIT 500
