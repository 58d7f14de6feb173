-- name: pgAccounts
-- $1: accounts of the batch. $2: its locks, whose escrow accounts are locked too, unless they are of a stripe. Rows are
-- locked in id order, so that gateways cannot deadlock. `striped` shows that another gateway has a part of the account.
SELECT id, available, locked, (SELECT 1 FROM account_stripes WHERE account = accounts.id LIMIT 1) AS striped FROM accounts
WHERE id = ANY (ARRAY(SELECT unnest($1::text[]) UNION SELECT 'escrow:' || account FROM locks WHERE id = ANY ($2::text[]) AND stripe IS NULL))
ORDER BY id FOR UPDATE

-- name: pgAssumeAccounts
-- Locks the rows of accounts $1 in the order of their ids. Fails with a division by zero unless they hold what a
-- decision has assumed: $2 available, $3 locked. The rows are found by their keys: a join of the locked rows would be
-- one of each with each.
WITH held AS (
  SELECT accounts.available = known.available AND accounts.locked = known.locked AS same
  FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS known (id, available, locked) JOIN accounts ON accounts.id = known.id
  ORDER BY accounts.id FOR UPDATE OF accounts
)
SELECT 1 / CAST(count(*) FILTER (WHERE same) = cardinality($1::text[]) AS INT) FROM held

-- name: pgAssumeAccountStripes
-- The same for stripes $2 of accounts $1: $3 available, $4 locked.
WITH held AS (
  SELECT s.available = known.available AND s.locked = known.locked AS same
  FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) AS known (account, stripe, available, locked)
  JOIN account_stripes AS s ON s.account = known.account AND s.stripe = known.stripe
  ORDER BY s.account, s.stripe FOR UPDATE OF s
)
SELECT 1 / CAST(count(*) FILTER (WHERE same) = cardinality($1::text[]) AS INT) FROM held

-- name: pgAssumeBudgetStripes
-- The same for stripes $2 of budgets $1: $3 spent, $4 locked, $5 leased.
WITH held AS (
  SELECT s.spent = known.spent AND s.locked = known.locked AND s.leased = known.leased AS same
  FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) AS known (budget, stripe, spent, locked, leased)
  JOIN budget_stripes AS s ON s.budget = known.budget AND s.stripe = known.stripe
  ORDER BY s.budget, s.stripe FOR UPDATE OF s
)
SELECT 1 / CAST(count(*) FILTER (WHERE same) = cardinality($1::text[]) AS INT) FROM held

-- name: pgAssumeBudgets
-- The same for budgets: $2 spent, $3 locked, $4 leased.
WITH held AS (
  SELECT budgets.spent = known.spent AND budgets.locked = known.locked AND budgets.leased = known.leased AS same
  FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) AS known (id, spent, locked, leased) JOIN budgets ON budgets.id = known.id
  ORDER BY budgets.id FOR UPDATE OF budgets
)
SELECT 1 / CAST(count(*) FILTER (WHERE same) = cardinality($1::text[]) AS INT) FROM held

-- name: pgBegin
-- All steps of a group are sent at once, and each would run by itself if this one failed. So the session is read-only
-- outside of such a transaction, see pgSetupLimits.
BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE

-- name: pgBudgets
SELECT id, spent, locked, NULLIF(leased, 0) AS leased FROM budgets
WHERE id = ANY (ARRAY(SELECT unnest($1::text[]) UNION SELECT unnest(string_to_array(budget, ' ')) FROM locks WHERE id = ANY ($2::text[]) AND budget IS NOT NULL AND stripe IS NULL))
ORDER BY id FOR UPDATE

-- name: pgAccountStripes
-- Locks and reads stripes: $2 of accounts $1, those of the locks $3, and all of accounts $4.
SELECT account, stripe, available, locked FROM account_stripes
WHERE (account, stripe) IN (
  SELECT * FROM unnest($1::text[], $2::bigint[])
  UNION SELECT 'escrow:' || account, stripe FROM locks WHERE id = ANY ($3::text[]) AND stripe IS NOT NULL
  UNION SELECT account, stripe FROM account_stripes WHERE account = ANY ($4::text[]))
ORDER BY account, stripe FOR UPDATE

-- name: pgBudgetStripes
-- The same for stripes of budgets.
SELECT budget, stripe, spent, locked, leased, most FROM budget_stripes
WHERE (budget, stripe) IN (
  SELECT * FROM unnest($1::text[], $2::bigint[])
  UNION SELECT unnest(string_to_array(budget, ' ')), stripe FROM locks WHERE id = ANY ($3::text[]) AND stripe IS NOT NULL AND budget IS NOT NULL
  UNION SELECT budget, stripe FROM budget_stripes WHERE budget = ANY ($4::text[]))
ORDER BY budget, stripe FOR UPDATE

-- name: pgChangeAccountStripes
UPDATE account_stripes SET available = account_stripes.available + c.available, locked = account_stripes.locked + c.locked
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) AS c (account, stripe, available, locked)
WHERE account_stripes.account = c.account AND account_stripes.stripe = c.stripe

-- name: pgChangeBudgetStripes
UPDATE budget_stripes SET spent = budget_stripes.spent + c.spent, locked = budget_stripes.locked + c.locked, leased = budget_stripes.leased + c.leased
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) AS c (budget, stripe, spent, locked, leased)
WHERE budget_stripes.budget = c.budget AND budget_stripes.stripe = c.stripe

-- name: pgChainEnd
-- The last group of a chain, 0 if there is none, and whether this server is a standby.
SELECT COALESCE(last.n, 0) AS n, COALESCE(last.hash, '') AS hash, CAST(CAST(pg_is_in_recovery() AS INT) AS BIGINT) AS standby
FROM (VALUES (1)) AS one (row) LEFT JOIN (SELECT n, hash FROM journal_batches WHERE chain = $1 ORDER BY n DESC LIMIT 1) AS last ON true

-- name: pgChangeBudgets
UPDATE budgets SET spent = budgets.spent + c.spent, locked = budgets.locked + c.locked, leased = budgets.leased + c.leased
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) AS c (id, spent, locked, leased)
WHERE budgets.id = c.id

-- name: pgChangeLocks
-- Changes locks of earlier batches that lent money, got money back, or are kept from now on. `lent` changes by a
-- difference, so that its CHECK also catches an error of the row locks. A lock of nothing may belong to an account without
-- a row, which nobody can lock: if another gateway has resolved such a lock meanwhile, `kept` is NULL, which the table
-- refuses, and the group is decided again. `resolved_at` of a lock that the same group resolves is already written.
UPDATE locks SET lent = locks.lent + c.lent, expires_at = c.expires_at,
  kept = CASE WHEN locks.resolved_at IS NOT DISTINCT FROM c.resolved_at THEN c.kept END
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) AS c (id, lent, kept, expires_at, resolved_at)
WHERE locks.id = c.id

-- name: pgCommitTransaction
COMMIT

-- name: pgCommit
-- Writes one group in one statement. Accounts change by differences, so that the CHECKs also catch an error of the row
-- locks. The JSON texts of all rows are one parameter, each after control character 31. JSON contains control
-- characters only as escapes, so the texts need no quoting. Control character 30 stands for NULL.
WITH
changed_accounts AS (
  UPDATE accounts SET available = accounts.available + c.available, locked = accounts.locked + c.locked
  FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS c (id, available, locked)
  WHERE accounts.id = c.id
),
credited_stripes AS (
  INSERT INTO account_stripes (account, stripe, available)
  SELECT account, $37::bigint, available FROM unnest($35::text[], $36::bigint[]) AS c (account, available) ORDER BY account
  ON CONFLICT (account, stripe) DO UPDATE SET available = account_stripes.available + excluded.available
),
new_locks AS (
  INSERT INTO locks (id, account, amount, prices, budget, created_at, expires_at, lock_detail,
    state, charged, fee, drawn, shortfall, parent, depth, lendable, lent, kept, stripe)
  -- An id that an archive has is NULL, which the table refuses. Then the whole group is read and decided again.
  SELECT CASE WHEN EXISTS (SELECT 1 FROM archives) AND EXISTS (SELECT 1 FROM archived_ids AS used
      WHERE used.prefix IN (n.id, left(n.id, 16) || ':' || (length(n.id) - 16))
        AND (used.first = '' OR substr(n.id, 17) COLLATE "C" BETWEEN used.first AND used.last)) THEN NULL ELSE id END,
    account, amount, prices, budget, $27::bigint, expires_at, lock_detail,
    'held', 0, 0, 0, 0, parent, COALESCE(depth, 0), COALESCE(lendable, 0), COALESCE(lent, 0), COALESCE(kept, 0), stripe
  FROM unnest($4::text[], $5::text[], $6::bigint[], (string_to_array($7::text, chr(31)))[2:], $8::text[], $9::bigint[], (string_to_array($10::text, chr(31)))[2:],
    $11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], $38::bigint[])
    AS n (id, account, amount, prices, budget, expires_at, lock_detail, parent, depth, lendable, lent, kept, stripe)
),
resolved_locks AS (
  UPDATE locks SET state = r.state, price = r.price, provider = r.provider, charged = r.charged, fee = r.fee, fee_bps = r.fee_bps, drawn = r.drawn,
    shortfall = r.shortfall, resolved_at = $27::bigint, usage = r.usage, detail = r.detail
  FROM unnest($16::text[], $17::text[], $18::text[], $19::text[], $20::bigint[], $21::bigint[], $22::bigint[], $23::bigint[], $24::bigint[],
    (string_to_array($25::text, chr(31), chr(30)))[2:], (string_to_array($26::text, chr(31), chr(30)))[2:])
    AS r (id, state, price, provider, charged, fee, fee_bps, drawn, shortfall, usage, detail)
  -- `resolved_at IS NULL` means held. A condition on `state` would let the planner search the index of held locks for
  -- each row.
  WHERE locks.id = r.id AND locks.resolved_at IS NULL
  RETURNING 1
)
INSERT INTO journal_batches (chain, n, at, count, prev, hash, movements)
-- If another gateway has resolved one of the locks meanwhile, the count is NULL, which the table refuses. Then the
-- whole group is rolled back and decided again.
SELECT $28::text, $29::bigint, $27::bigint,
  CASE WHEN (SELECT count(*) FROM resolved_locks) = $30::bigint THEN $31::bigint END, $32::text, $33::text, $34::text

-- name: pgCommitted
SELECT hash FROM journal_batches WHERE chain = $1 AND hash = ANY ($2::text[])

-- name: pgInsertTransfers
INSERT INTO transfers (id, from_account, to_account, amount, memo, at)
SELECT id, from_account, to_account, amount, memo, $6
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[]) AS t (id, from_account, to_account, amount, memo)

-- name: pgFoldStripes
-- Moves what the stripes of accounts have available to their rows of `accounts`. Call it when the rows of `accounts`
-- are locked. A gateway that changes one of the stripes meanwhile is waited for, and one that comes later begins a
-- new stripe. What locks hold stays in their stripes.
WITH held AS (
  SELECT account, stripe, available, locked FROM account_stripes WHERE account = ANY ($1::text[]) ORDER BY account, stripe FOR UPDATE
),
ended AS (
  DELETE FROM account_stripes USING held
  WHERE account_stripes.account = held.account AND account_stripes.stripe = held.stripe AND held.locked = 0
),
emptied AS (
  UPDATE account_stripes SET available = 0 FROM held
  WHERE account_stripes.account = held.account AND account_stripes.stripe = held.stripe AND held.locked <> 0
)
INSERT INTO accounts (id, available, locked)
SELECT account, CAST(SUM(available) AS BIGINT), 0 FROM held GROUP BY account ORDER BY account
ON CONFLICT (id) DO UPDATE SET available = accounts.available + excluded.available

-- name: pgFoldBudgetStripes
-- Takes back the room of all stripes of budgets that is not used, and counts what they have spent in the rows of
-- `budgets`. Call it when these rows are locked.
WITH held AS (
  SELECT budget, stripe, spent, locked FROM budget_stripes WHERE budget = ANY ($1::text[]) ORDER BY budget, stripe FOR UPDATE
),
ended AS (
  DELETE FROM budget_stripes USING held
  WHERE budget_stripes.budget = held.budget AND budget_stripes.stripe = held.stripe AND held.locked = 0
),
emptied AS (
  UPDATE budget_stripes SET spent = 0, leased = held.locked FROM held
  WHERE budget_stripes.budget = held.budget AND budget_stripes.stripe = held.stripe AND held.locked <> 0
)
UPDATE budgets SET spent = budgets.spent + sums.spent, leased = sums.locked
FROM (SELECT budget, CAST(SUM(spent) AS BIGINT) AS spent, CAST(SUM(locked) AS BIGINT) AS locked FROM held GROUP BY budget) AS sums
WHERE budgets.id = sums.budget

-- name: pgHasLeases
-- One row if a stripe of accounts $1 has money, or one of budgets $2 has counted something or has room.
SELECT 1 AS found WHERE EXISTS (SELECT 1 FROM account_stripes WHERE account = ANY ($1::text[]) AND available > 0)
  OR EXISTS (SELECT 1 FROM budget_stripes WHERE budget = ANY ($2::text[]) AND leased > locked)

-- name: pgLeaseAccounts
-- Moves a part of what accounts $1 have available to their stripes $3, if the stripe has less than $2. Call it when
-- their rows and stripes are locked. The part is smaller the more stripes the account has, and money for a few calls is
-- not divided. While a gateway runs that does not know leases (it holds a number of the older class), none are given.
WITH asked AS (
  SELECT accounts.id, known.need, COALESCE(own.available, 0) AS own,
    accounts.available / (2 + 2 * (SELECT count(*) FROM account_stripes AS s WHERE s.account = accounts.id)) AS part
  FROM unnest($1::text[], $2::bigint[]) AS known (id, need) JOIN accounts ON accounts.id = known.id
  LEFT JOIN account_stripes AS own ON own.account = accounts.id AND own.stripe = $3::bigint
  FOR UPDATE OF accounts
),
given AS (
  SELECT id, part FROM asked WHERE own < need AND part >= 8 * need
    AND NOT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = 1416588354 AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
),
taken AS (UPDATE accounts SET available = accounts.available - given.part FROM given WHERE accounts.id = given.id)
INSERT INTO account_stripes (account, stripe, available) SELECT id, $3::bigint, part FROM given ORDER BY id
ON CONFLICT (account, stripe) DO UPDATE SET available = account_stripes.available + excluded.available

-- name: pgLeaseBudgets
-- The same for the room of budgets $1 whose limits are $4, if their stripes $3 have less room than $2. Room that was
-- given under another limit must be taken back before.
WITH asked AS (
  SELECT budgets.id, known.need, known.most, COALESCE(own.leased - own.spent - own.locked, 0) AS own,
    (known.most - budgets.spent - budgets.locked - budgets.leased) / (2 + 2 * (SELECT count(*) FROM budget_stripes AS s WHERE s.budget = budgets.id)) AS part
  FROM unnest($1::text[], $2::bigint[], $4::bigint[]) AS known (id, need, most) JOIN budgets ON budgets.id = known.id
  LEFT JOIN budget_stripes AS own ON own.budget = budgets.id AND own.stripe = $3::bigint
  FOR UPDATE OF budgets
),
given AS (
  SELECT id, part, most FROM asked WHERE own < need AND part >= 8 * need
    AND NOT EXISTS (SELECT 1 FROM budget_stripes AS s WHERE s.budget = asked.id AND s.most <> asked.most AND s.leased > s.spent + s.locked)
    AND NOT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = 1416588354 AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
),
taken AS (UPDATE budgets SET leased = budgets.leased + given.part FROM given WHERE budgets.id = given.id)
INSERT INTO budget_stripes (budget, stripe, spent, locked, leased, most) SELECT id, $3::bigint, 0, 0, part, most FROM given ORDER BY id
ON CONFLICT (budget, stripe) DO UPDATE SET leased = budget_stripes.leased + excluded.leased, most = excluded.most

-- name: pgLocks
-- Needs no FOR UPDATE. A transaction changes a lock only while it holds the row of the lock's account, or its stripe,
-- and the locks above and under it have the same one. The update also checks the state again. A call in an archive is a
-- resolved lock without money, so that its id is not used again.
SELECT id, account, amount, prices, budget, state, expires_at, stripe,
  parent, NULLIF(depth, 0) AS depth, NULLIF(lendable, 0) AS lendable, NULLIF(lent, 0) AS lent, NULLIF(kept, 0) AS kept
FROM locks WHERE id = ANY ($1::text[])
UNION ALL
SELECT one.id, '', 0, '[]', NULL, 'released', 0, NULL, NULL, NULL, NULL, NULL, NULL
FROM unnest($1::text[]) AS one (id)
WHERE EXISTS (SELECT 1 FROM archives) AND NOT EXISTS (SELECT 1 FROM locks WHERE locks.id = one.id)
  AND EXISTS (SELECT 1 FROM archived_ids AS used WHERE used.prefix IN (one.id, left(one.id, 16) || ':' || (length(one.id) - 16))
    AND (used.first = '' OR substr(one.id, 17) COLLATE "C" BETWEEN used.first AND used.last))

-- name: pgNewBudgets
-- A missing row cannot be locked, so the first use of a budget creates it.
INSERT INTO budgets (id, spent, locked) SELECT id, 0, 0 FROM unnest($1::text[]) AS b (id) ORDER BY id
ON CONFLICT (id) DO NOTHING

-- name: pgOpenAccounts
-- A missing row cannot be locked, so the first movement of an account creates it. Rows are created in id order, the
-- same order in which they are locked.
INSERT INTO accounts (id, available, locked) SELECT id, 0, 0 FROM unnest($1::text[]) AS a (id) ORDER BY id
ON CONFLICT (id) DO NOTHING

-- name: pgResolveNewLocks
-- Resolves locks that the same group has made.
UPDATE locks SET state = r.state, price = r.price, provider = r.provider, charged = r.charged, fee = r.fee, fee_bps = r.fee_bps, drawn = r.drawn,
  shortfall = r.shortfall, resolved_at = $12, usage = r.usage, detail = r.detail
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
  (string_to_array($10::text, chr(31), chr(30)))[2:], (string_to_array($11::text, chr(31), chr(30)))[2:])
  AS r (id, state, price, provider, charged, fee, fee_bps, drawn, shortfall, usage, detail)
WHERE locks.id = r.id

-- name: pgRollback
ROLLBACK

-- name: pgFlushLater
-- For a group of nothing but locks that end with their process: visible to all at its commit, and flushed with the next
-- group. After a crash of the server such a lock is released anyway.
SELECT set_config('synchronous_commit', 'off', true)

-- name: pgSetupDurable
-- An acknowledged commit must survive a power cut, whatever the server's default is.
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'

-- name: pgSetupLimits
-- A gateway that disappears inside a transaction must not block accounts for the other gateways. Nothing is written
-- outside of a transaction that pgBegin has begun.
SELECT set_config('idle_in_transaction_session_timeout', '10s', false), set_config('lock_timeout', '2500ms', false),
  set_config('default_transaction_read_only', 'on', false)

-- name: pgSetupPlans
-- The session's statements access rows by key only. A generic plan that was made while the tables were small must not
-- scan the tables after they have grown.
SELECT set_config('enable_seqscan', 'off', false), set_config('enable_hashjoin', 'off', false), set_config('enable_mergejoin', 'off', false),
  set_config('plan_cache_mode', 'force_generic_plan', false), set_config('jit', 'off', false)

-- name: pgTakeStripe
-- The first stripe that no other connection holds. It is held until the connection ends. The number of the class is any
-- that nobody else uses; the one before it is that of gateways which do not know leases. No row if all are held: then
-- several gateways credit stripe 0, and wait for one another.
SELECT stripe FROM generate_series(0, 1023) AS s (stripe) WHERE pg_try_advisory_lock(1416588355, stripe) LIMIT 1

-- name: pgTransfers
SELECT id FROM transfers WHERE id = ANY ($1::text[])

-- name: pgTryBatch
-- What a group writes, for a transaction that is rolled back. No group has this number.
INSERT INTO journal_batches (chain, n, at, count, prev, hash, movements) VALUES ($1, -1, 0, 0, '', '', $2)
