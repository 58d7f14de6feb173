-- Withdrawals that are signed, or were paid above a height: a reader of the chain up to this height has not seen them
-- leave. The set is materialized before it is sorted, because a scan in the order of ids would read all withdrawals
-- that were ever paid.
WITH leaving AS MATERIALIZED (
  SELECT id FROM withdrawals WHERE network = $1 AND state = 'signed'
  UNION ALL
  SELECT id FROM withdrawals WHERE network = $1 AND state = 'paid' AND height > $2
)
SELECT id, network, account, source, address, amount, fee, handed_out, state, signed, transaction_id, height, reason, created_at, updated_at, looks
FROM withdrawals WHERE id IN (SELECT id FROM leaving WHERE id > $3 ORDER BY id LIMIT 500) ORDER BY id
