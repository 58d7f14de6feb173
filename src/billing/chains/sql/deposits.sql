-- name: insertDeposit
-- $10 NULL: no limit for the open payments of this payer.
INSERT INTO deposits (id, network, account, payer, amount, payment, request, state, created_at, updated_at, next_look_at, looks)
SELECT $1, $2, $3, $4, CAST($5 AS BIGINT), $6, $7, 'received', CAST($8 AS BIGINT), CAST($8 AS BIGINT), CAST($9 AS BIGINT), 0
WHERE CAST($10 AS BIGINT) IS NULL OR $10 > (SELECT COUNT(*) FROM deposits AS others WHERE others.network = $2 AND others.state = 'received' AND others.payer = $4 AND others.payment IS NOT NULL)
ON CONFLICT (id) DO NOTHING
RETURNING id

-- name: findDeposit
SELECT id, network, account, payer, amount, payment, request, state, transaction_id, event, height, credited, reason, created_at, updated_at, looks
FROM deposits WHERE id = $1

-- name: listDeposits
SELECT id, network, account, payer, amount, payment, request, state, transaction_id, event, height, credited, reason, created_at, updated_at, looks
FROM deposits WHERE account = $1 AND (created_at < $2 OR (created_at = $2 AND id < $3)) ORDER BY created_at DESC, id DESC LIMIT $4

-- name: lockChain
-- A lock for all chains. Only one transaction at a time holds it, so its next statement reads the committed result of
-- the transaction that held the lock before.
UPDATE chains SET height = height WHERE network = (SELECT MIN(first.network) FROM chains AS first) RETURNING network

-- name: noteEvent
-- The event of a chain is stored before it is credited. Money that the chain can still undo is credited only up to a
-- limit.
UPDATE deposits SET state = 'crediting', transaction_id = $2, event = $3, height = $4, credited = $5, updated_at = $6, next_look_at = $7
WHERE id = $1 AND state IN ('received', 'failed') AND (
  $8 = 1 OR $5 + (SELECT COALESCE(SUM(others.credited), 0) FROM deposits AS others WHERE others.network = deposits.network AND others.state IN ('crediting', 'credited')) <= $9
) AND (
  $8 = 1 OR account IS NULL OR account LIKE 'tollgate:%' OR $5 + (
    SELECT COALESCE(SUM(others.credited), 0) FROM deposits AS others
    WHERE others.state IN ('crediting', 'credited') AND others.account NOT LIKE 'tollgate:%'
  ) <= $10
)
RETURNING id, network, account, payer, amount, payment, request, state, transaction_id, event, height, credited, reason, created_at, updated_at, looks

-- name: notePlace
-- After a reorganization the event may be at another height or in another transaction.
UPDATE deposits SET transaction_id = $2, event = $3, height = $4, updated_at = $5
WHERE id = $1 AND state IN ('crediting', 'credited', 'final') AND (event <> $3 OR height <> $4)
RETURNING id

-- name: noteTransaction
UPDATE deposits SET transaction_id = $2, updated_at = $3 WHERE id = $1 AND state = 'received' RETURNING id

-- name: markCredited
UPDATE deposits SET state = 'credited', updated_at = $2, next_look_at = $3 WHERE id = $1 AND state = 'crediting' RETURNING id

-- name: markFinal
UPDATE deposits SET state = 'final', updated_at = $2, next_look_at = NULL WHERE id = $1 AND state IN ('crediting', 'credited') RETURNING id

-- name: markFailed
UPDATE deposits SET state = 'failed', reason = $2, updated_at = $3, next_look_at = NULL WHERE id = $1 AND state = 'received' RETURNING id

-- name: beginReversal
UPDATE deposits SET state = 'reversing', reason = $2, updated_at = $3, next_look_at = $3 WHERE id = $1 AND state = 'credited' RETURNING id

-- name: endReversal
UPDATE deposits SET state = 'reversed', updated_at = $2, next_look_at = NULL WHERE id = $1 AND state = 'reversing' RETURNING id

-- name: claimDeposits
-- The outer condition is checked again if another gateway has claimed the row meanwhile.
UPDATE deposits SET next_look_at = $2, looks = looks + 1
WHERE next_look_at <= $1 AND network = $4 AND id IN (SELECT due.id FROM deposits AS due WHERE due.next_look_at <= $1 AND due.network = $4 ORDER BY due.next_look_at LIMIT $3)
RETURNING id, network, account, payer, amount, payment, request, state, transaction_id, event, height, credited, reason, created_at, updated_at, looks

-- name: forgetDepositClaims
UPDATE deposits SET next_look_at = $1 WHERE next_look_at > $1 RETURNING id

-- name: scheduleDeposit
UPDATE deposits SET next_look_at = $2 WHERE id = $1 AND next_look_at IS NOT NULL RETURNING id

-- name: unfinalOfAccount
SELECT COUNT(*) AS deposits FROM deposits WHERE account = $1 AND created_at <= $2 AND state IN ('crediting', 'credited', 'reversing')

-- name: paidIn
-- The sum of an account's deposits that were not undone.
SELECT CAST(COALESCE(SUM(credited), 0) AS BIGINT) AS amount FROM deposits WHERE account = $1 AND state IN ('crediting', 'credited', 'final')

-- name: suspendedOfPayer
SELECT id, network, account, payer, amount, payment, request, state, transaction_id, event, height, credited, reason, created_at, updated_at, looks
FROM deposits WHERE account IS NULL AND state = 'final' AND payer = $1 AND ($2 = '' OR network = $2) AND NOT EXISTS (SELECT 1 FROM treasury_acts WHERE treasury_acts.deposit = deposits.id) ORDER BY created_at LIMIT 100

-- name: listSuspense
SELECT id, network, account, payer, amount, payment, request, state, transaction_id, event, height, credited, reason, created_at, updated_at, looks
FROM deposits WHERE account IS NULL AND state = 'final' AND NOT EXISTS (SELECT 1 FROM treasury_acts WHERE treasury_acts.deposit = deposits.id) AND (created_at < $1 OR (created_at = $1 AND id < $2)) ORDER BY created_at DESC, id DESC LIMIT $3

-- name: listOpenPayments
-- Signed payments that may still arrive or be undone. The first list of states repeats the condition of the partial
-- index.
SELECT id, network, account, payer, amount, payment, request, state, transaction_id, event, height, credited, reason, created_at, updated_at, looks
FROM deposits
WHERE network = $1 AND state IN ('received', 'crediting', 'credited', 'reversing') AND state <> 'reversing' AND payment IS NOT NULL AND id > $2
ORDER BY id LIMIT 500

-- name: attributeDeposit
-- A deposit that is the arrival of a move can be given only to that move.
UPDATE deposits SET account = $2, updated_at = $3, next_look_at = $3
WHERE id = $1 AND account IS NULL AND state = 'final' AND ($2 = $4 OR NOT EXISTS (SELECT 1 FROM treasury_acts WHERE treasury_acts.deposit = deposits.id))
RETURNING id
