-- name: mayWithdraw
-- No row: the operator has frozen or closed account $1.
SELECT 1 AS yes WHERE NOT EXISTS (SELECT 1 FROM consumers WHERE account = $1 AND state <> 'open')

-- name: insertWithdrawal
INSERT INTO withdrawals (id, network, account, source, address, amount, fee, handed_out, state, created_at, updated_at, next_look_at, looks)
VALUES ($1, $2, $3, $4, $5, $6, $10, $7, 'requested', $8, $8, $9, 0)
ON CONFLICT (id) DO NOTHING
RETURNING id

-- name: findWithdrawal
SELECT id, network, account, source, address, amount, fee, handed_out, state, signed, transaction_id, height, reason, created_at, updated_at, looks
FROM withdrawals WHERE id = $1

-- name: listWithdrawals
SELECT id, network, account, source, address, amount, fee, handed_out, state, signed, transaction_id, height, reason, created_at, updated_at, looks
FROM withdrawals WHERE account = $1 AND (created_at < $2 OR (created_at = $2 AND id < $3)) ORDER BY created_at DESC, id DESC LIMIT $4

-- name: listWithdrawalsOfSource
SELECT id, network, account, source, address, amount, fee, handed_out, state, signed, transaction_id, height, reason, created_at, updated_at, looks
FROM withdrawals WHERE source = $1 AND (created_at < $2 OR (created_at = $2 AND id < $3)) ORDER BY created_at DESC, id DESC LIMIT $4

-- name: moveWithdrawal
-- Moves a withdrawal from state $2, so only one caller makes each step.
UPDATE withdrawals SET state = $3, reason = COALESCE($4, reason), updated_at = $5, next_look_at = $6 WHERE id = $1 AND state = $2 RETURNING id

-- name: signWithdrawal
UPDATE withdrawals SET state = 'signed', fee = fee + $5, signed = $2, transaction_id = $3, updated_at = $4, next_look_at = $4
WHERE id = $1 AND state = 'queued' AND NOT EXISTS (SELECT 1 FROM chains WHERE chains.network = withdrawals.network AND chains.halted IS NOT NULL)
RETURNING id

-- name: resignWithdrawal
UPDATE withdrawals SET fee = fee + $6, signed = $3, transaction_id = $4, updated_at = $5 WHERE id = $1 AND state = 'signed' AND signed = $2 RETURNING id

-- name: noteSent
UPDATE withdrawals SET transaction_id = $2, updated_at = $3 WHERE id = $1 AND state = 'signed' RETURNING id

-- name: noteHeight
UPDATE withdrawals SET transaction_id = $2, height = $3, updated_at = $4 WHERE id = $1 AND state = 'signed' RETURNING id

-- name: markPaid
UPDATE withdrawals SET state = 'paid', transaction_id = $2, height = $3, updated_at = $4, next_look_at = NULL WHERE id = $1 AND state = 'signed' RETURNING id

-- name: takeBackWithdrawal
UPDATE withdrawals SET handed_out = 0, updated_at = $2, next_look_at = $2
WHERE id = $1 AND handed_out = 1 AND state IN ('requested', 'debited', 'queued', 'signed')
RETURNING id

-- name: claimWithdrawals
-- The outer condition is checked again if another gateway has claimed the row meanwhile.
UPDATE withdrawals SET next_look_at = $2, looks = looks + 1
WHERE next_look_at <= $1 AND network = $4 AND id IN (SELECT due.id FROM withdrawals AS due WHERE due.next_look_at <= $1 AND due.network = $4 ORDER BY due.next_look_at LIMIT $3)
RETURNING id, network, account, source, address, amount, fee, handed_out, state, signed, transaction_id, height, reason, created_at, updated_at, looks

-- name: forgetWithdrawalClaims
UPDATE withdrawals SET next_look_at = $1 WHERE next_look_at > $1 RETURNING id

-- name: scheduleWithdrawal
UPDATE withdrawals SET next_look_at = $2 WHERE id = $1 AND next_look_at IS NOT NULL RETURNING id

-- name: withdrawnSince
-- The sum taken from one source, without the withdrawals that were given back.
SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) AS amount FROM withdrawals
WHERE source = $1 AND created_at > $2 AND state IN ('debited', 'queued', 'signed', 'paid')

-- name: unsignedOfAccount
SELECT id, network, account, source, address, amount, fee, handed_out, state, signed, transaction_id, height, reason, created_at, updated_at, looks
FROM withdrawals WHERE source = $1 AND state IN ('debited', 'queued', 'returning') ORDER BY created_at DESC LIMIT 100

-- name: signedWithdrawals
SELECT id, network, account, source, address, amount, fee, handed_out, state, signed, transaction_id, height, reason, created_at, updated_at, looks
FROM withdrawals WHERE network = $1 AND state = 'signed' AND id > $2 ORDER BY id LIMIT 500

-- name: listLeavingWithdrawals
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

-- name: signedAmount
-- Each signed withdrawal has a next look, so the query can use the index of next_look_at.
SELECT CAST(COALESCE(SUM(amount - fee), 0) AS BIGINT) AS amount FROM withdrawals WHERE network = $1 AND state = 'signed' AND next_look_at IS NOT NULL
