-- What is signed, and what was paid above a height: whoever has read the chain up to there has not seen it leave. Made before it is put in order, as the order of ids would lead through all that was ever paid.
WITH leaving AS MATERIALIZED (
  SELECT id FROM withdrawals WHERE network = $1 AND state = 'signed'
  UNION ALL
  SELECT id FROM withdrawals WHERE network = $1 AND state = 'paid' AND height > $2
)
SELECT id, network, account, source, address, amount, fee, handed_out, state, signed, transaction_id, height, reason, created_at, updated_at, looks
FROM withdrawals WHERE id IN (SELECT id FROM leaving WHERE id > $3 ORDER BY id LIMIT 500) ORDER BY id
