-- name: insertConsumer
INSERT INTO consumers (account, label, created_at) VALUES ($1, $2, $3) ON CONFLICT (account) DO NOTHING RETURNING *

-- name: insertNamedConsumer
-- Makes account $1 with the label $2 at the time $3, unless another account has this label or is named so ($4), whatever
-- the case of letters. No row either if the account exists.
INSERT INTO consumers (account, label, created_at)
SELECT $1, $2, $3 WHERE NOT EXISTS (
  SELECT 1 FROM consumers AS others WHERE others.account <> $1 AND (LOWER(others.label) = LOWER($2) OR others.account = $4)
)
ON CONFLICT (account) DO NOTHING RETURNING *

-- name: findConsumer
SELECT * FROM consumers WHERE account = $1

-- name: findLabels
-- $1: a JSON object of arrays, each with the id of one account.
SELECT account, label FROM consumers WHERE label <> '' AND account IN (SELECT value ->> 0 FROM json_each($1))

-- name: isKnownConsumer
SELECT account FROM consumers WHERE account = $1
UNION ALL
SELECT account FROM api_keys WHERE account = $1
UNION ALL
SELECT account FROM deposits WHERE account = $1
LIMIT 1

-- name: listConsumers
-- An account that nobody has named exists since its first key or deposit. $3: only accounts in this state, or '' for all.
-- $4: only accounts with this label, or '' for all.
SELECT * FROM (
  SELECT account, label, created_at, state, state_reason, state_at FROM consumers
  UNION ALL
  SELECT account, '' AS label, MIN(created_at) AS created_at, 'open' AS state, '' AS state_reason, NULL AS state_at FROM (
    SELECT account, created_at FROM api_keys
    UNION ALL
    SELECT account, created_at FROM deposits WHERE account IS NOT NULL
  ) AS began
  WHERE NOT EXISTS (SELECT 1 FROM consumers WHERE consumers.account = began.account)
  GROUP BY account
) AS known
WHERE ($3 = '' OR state = $3) AND ($4 = '' OR LOWER(label) = LOWER($4))
ORDER BY created_at, account LIMIT $1 OFFSET $2

-- name: renameConsumer
-- Gives account $1 the label $2, unless another account has this label or is named so ($3), whatever the case of letters.
-- Any number of accounts may have no label.
UPDATE consumers SET label = $2 WHERE account = $1 AND ($2 = '' OR NOT EXISTS (
  SELECT 1 FROM consumers AS others WHERE others.account <> $1 AND (LOWER(others.label) = LOWER($2) OR others.account = $3)
)) RETURNING *

-- name: listLabelsLike
-- Labels of accounts other than $1 that may be the same as the folded label $2: those that are it without spaces, and
-- those with letters outside of ASCII, which the embedded database does not fold.
SELECT label FROM consumers WHERE account <> $1 AND label <> ''
  AND (OCTET_LENGTH(label) <> LENGTH(label) OR REPLACE(LOWER(label), ' ', '') = REPLACE($2, ' ', ''))

-- name: changeState
-- Changes the state of account $1 from $2 to $3, with the reason $4 at the time $5.
UPDATE consumers SET state = $3, state_reason = $4, state_at = $5 WHERE account = $1 AND state = $2 RETURNING *

-- name: deleteKeysOfClosed
DELETE FROM api_keys WHERE account = $1 AND EXISTS (SELECT 1 FROM consumers WHERE account = $1 AND state = 'closed') RETURNING hash

-- name: endSessionsOfClosed
DELETE FROM web_sessions WHERE account = $1 AND EXISTS (SELECT 1 FROM consumers WHERE account = $1 AND state = 'closed') RETURNING id

-- name: listStoppedAccounts
SELECT account, state FROM consumers WHERE state <> 'open'

-- name: waitForTurn
-- This row is a lock for what $1 names, which may have no row to lock. Of two transactions that insert it, the second
-- waits for the end of the first.
INSERT INTO consumers (account, label, created_at) VALUES ($1, '', 0)

-- name: endTurn
DELETE FROM consumers WHERE account = $1
