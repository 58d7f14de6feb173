-- name: auditBalances
-- Accounts whose balance is not the sum of their entries.
SELECT account, CAST(SUM(available) AS BIGINT) AS available, CAST(SUM(locked) AS BIGINT) AS locked
FROM (
  SELECT id AS account, available, locked FROM accounts
  UNION ALL
  SELECT account, available, locked FROM account_stripes
  UNION ALL
  SELECT account, -available, -locked FROM entries
) AS both_sides
GROUP BY account HAVING SUM(available) <> 0 OR SUM(locked) <> 0
ORDER BY account LIMIT 20

-- name: auditBatches
SELECT chain, n, at, count, prev, hash, movements FROM journal_batches
WHERE (chain, n) > ($1, $2) ORDER BY chain, n LIMIT $3

-- name: auditBudgets
-- Budgets whose figures differ from the sums of their locks. A lock names its budgets in one text, separated by spaces.
SELECT id, CAST(SUM(spent) AS BIGINT) AS spent, CAST(SUM(locked) AS BIGINT) AS locked
FROM (
  SELECT id, spent, locked FROM budget_sums
  UNION ALL
  SELECT one.value, -charged, CASE state WHEN 'held' THEN lent - amount ELSE 0 END
  FROM live_locks JOIN json_each('["' || replace(budget, ' ', '","') || '"]') AS one
  WHERE budget IS NOT NULL
  UNION ALL
  SELECT one.value, -charged, 0 FROM archived_spending JOIN json_each('["' || replace(budget, ' ', '","') || '"]') AS one
  WHERE archive <= (SELECT MAX(number) FROM archives)
) AS both_sides
GROUP BY id HAVING SUM(spent) <> 0 OR SUM(locked) <> 0
ORDER BY id LIMIT 20

-- name: auditChildren
-- Locks under a parent that do not fit the parent or the journal. Each must have drawn its amount from its parent once.
-- If the parent was held when the lock ended, the lock must have given back its uncharged rest once. A parent that is
-- held now was held then. For a parent that has ended, the times of different gateways cannot prove the order, so the
-- rest may be given back or not.
SELECT id
FROM (
  SELECT child.id, 1 AS written, 0 AS drew, 0 AS gave, child.parent, 'escrow:' || child.account AS account, child.amount, 0 AS given,
    CASE child.state WHEN 'held' THEN 0 ELSE child.amount - child.lent - child.charged END AS rest,
    CASE parent.state WHEN 'held' THEN 1 ELSE 0 END AS must_give,
    CASE WHEN parent.account = child.account AND parent.depth + 1 = child.depth AND child.drawn = 0
      AND COALESCE(parent.budget, '') = COALESCE(child.budget, '') THEN 0 ELSE 1 END AS misfit
  FROM live_locks AS child LEFT JOIN live_locks AS parent ON parent.id = child.parent
  WHERE child.parent IS NOT NULL
  UNION ALL
  SELECT id, 0, 1, 0, counterparty, account, amount, 0, NULL, NULL, NULL FROM movements WHERE kind = 'lend'
  UNION ALL
  SELECT id, 0, 0, 1, counterparty, account, NULL, amount, NULL, NULL, NULL FROM movements WHERE kind = 'return'
) AS told
GROUP BY id
HAVING SUM(written) <> 1 OR SUM(drew) <> 1 OR SUM(gave) > 1 OR MAX(misfit) <> 0
  OR MIN(parent) <> MAX(parent) OR MIN(account) <> MAX(account) OR MIN(amount) <> MAX(amount)
  OR SUM(given) <> MAX(rest) AND (MAX(must_give) = 1 OR SUM(gave) > 0)
ORDER BY id LIMIT 20

-- name: auditEntries
-- The balances at the end of the newest archive, and the signed legs of every movement after it. `available` and
-- `locked` are changes of the account, and over all rows they sum to 0. `lend` (a lock draws from its parent) and
-- `return` (it gives back) have no second account: the other side is a lock.
CREATE TEMP VIEW entries AS
SELECT chain, batch, position, kind, id, account,
  CASE kind
    WHEN 'lock' THEN -amount
    WHEN 'return' THEN -amount
    WHEN 'settle' THEN amount - charged
    WHEN 'transfer' THEN -amount
    ELSE amount
  END AS available,
  CASE kind WHEN 'lock' THEN amount WHEN 'return' THEN amount WHEN 'transfer' THEN 0 ELSE -amount END AS locked
FROM live_movements
UNION ALL
SELECT chain, batch, position, kind, id, counterparty,
  CASE kind WHEN 'settle' THEN charged - fee ELSE amount END, 0
FROM live_movements WHERE kind IN ('settle', 'transfer')
UNION ALL
SELECT chain, batch, position, kind, id, 'fees', fee, 0
FROM live_movements WHERE kind = 'settle' AND fee <> 0
UNION ALL
SELECT '', 0, 0, 'archived', '', account, available, locked FROM archived_balances
WHERE archive = (SELECT MAX(number) FROM archives)

-- name: auditHeld
-- Accounts, and stripes of accounts, whose locked part differs from what their held locks hold.
SELECT account, CAST(SUM(locked) AS BIGINT) AS difference
FROM (
  SELECT id AS account, -1 AS stripe, locked FROM accounts
  UNION ALL
  SELECT account, stripe, locked FROM account_stripes
  UNION ALL
  SELECT 'escrow:' || account, COALESCE(stripe, -1), lent - amount FROM live_locks WHERE state = 'held'
) AS both_sides
GROUP BY account, stripe HAVING SUM(locked) <> 0
ORDER BY account LIMIT 20

-- name: auditLeases
-- Budgets whose leased room is not that of their stripes, and stripes that belong to no budget.
SELECT id, CAST(SUM(leased) AS BIGINT) AS difference
FROM (
  SELECT id, leased, 1 AS written FROM budgets
  UNION ALL
  SELECT budget, -leased, 0 FROM budget_stripes
) AS both_sides
GROUP BY id HAVING SUM(leased) <> 0 OR SUM(written) <> 1
ORDER BY id LIMIT 20

-- name: auditInsertMovement
INSERT INTO group_movements (chain, batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)

-- name: auditLent
-- Locks whose `lent` differs from what the locks under them hold or were charged, or whose lent or charged parts exceed
-- what their amount allows.
SELECT id, CAST(SUM(lent) AS BIGINT) AS lent, MAX(misfit) AS misfit
FROM (
  SELECT id, lent, CASE WHEN lent < 0 OR lent > lendable OR lendable > amount OR charged - drawn > amount - lendable THEN 1 ELSE 0 END AS misfit
  FROM live_locks WHERE lendable <> 0 OR lent <> 0
  UNION ALL
  SELECT parent, -amount, 0 FROM live_locks WHERE parent IS NOT NULL
  UNION ALL
  SELECT counterparty, amount, 0 FROM movements WHERE kind = 'return'
) AS both_sides
GROUP BY id HAVING SUM(lent) <> 0 OR MAX(misfit) <> 0
ORDER BY id LIMIT 20

-- name: auditLockTotals
SELECT COUNT(CASE state WHEN 'held' THEN 1 END) AS held, COUNT(CASE state WHEN 'settled' THEN 1 END) AS settled,
  COUNT(CASE state WHEN 'released' THEN 1 END) AS released, COUNT(CASE state WHEN 'expired' THEN 1 END) AS expired,
  CAST(COALESCE(SUM(charged), 0) AS BIGINT) AS charged, CAST(COALESCE(SUM(shortfall), 0) AS BIGINT) AS shortfall
FROM live_locks

-- name: auditLocks
-- Locks that differ from the journal. The journal must open each lock once. It must resolve it once, with the state and
-- the amounts of the lock, unless the lock is held. The amount of a resolution is what the lock held: its amount minus
-- what it had lent. UNION ALL and GROUP BY need one pass over each side. A full join would compare every lock with
-- every row.
SELECT id, MAX(lock_state) AS state, SUM(opened) AS opened, SUM(resolved) AS resolved
FROM (
  SELECT id, 1 AS lock_rows, state AS lock_state, state, 0 AS opened, 0 AS resolved, 'escrow:' || account AS account, amount,
    CASE state WHEN 'held' THEN NULL ELSE amount - lent END AS held, charged, fee, drawn, COALESCE(price, '') AS price, COALESCE('earnings:' || provider, '') AS counterparty, created_at AS opened_at, resolved_at
  FROM live_locks
  UNION ALL
  SELECT id, 0, NULL, NULL, 1, 0, account, amount, NULL, -charged, -fee, -drawn, NULL, NULL, at, NULL
  FROM movements WHERE kind = 'lock'
  UNION ALL
  SELECT id, 0, NULL, CASE kind WHEN 'settle' THEN 'settled' WHEN 'release' THEN 'released' WHEN 'expire' THEN 'expired' ELSE kind END,
    0, 1, account, NULL, amount, -charged, -fee, -drawn, COALESCE(price, ''), COALESCE(counterparty, ''), NULL, at
  FROM movements WHERE kind NOT IN ('lock', 'transfer', 'lend', 'return')
) AS told
GROUP BY id
HAVING SUM(lock_rows) <> 1 OR SUM(opened) <> 1
  OR SUM(resolved) <> CASE MAX(lock_state) WHEN 'held' THEN 0 ELSE 1 END
  OR MIN(state) <> MAX(state) OR MIN(account) <> MAX(account) OR MIN(amount) <> MAX(amount) OR MIN(held) <> MAX(held)
  OR SUM(charged) <> 0 OR SUM(fee) <> 0 OR SUM(drawn) <> 0
  OR MIN(price) <> MAX(price) OR MIN(counterparty) <> MAX(counterparty)
  OR MIN(opened_at) <> MAX(opened_at) OR MIN(resolved_at) <> MAX(resolved_at)
ORDER BY id LIMIT 20

-- name: auditLiveLocks
-- The calls that are not in an archive. Those that are may not be dropped yet.
CREATE TEMP VIEW live_locks AS
SELECT * FROM locks
WHERE created_at >= (SELECT COALESCE(MAX(ends_at), 0) FROM archives) OR resolved_at IS NULL
  OR resolved_at >= (SELECT COALESCE(MAX(ends_at), 0) FROM archives)
  OR id IN (SELECT id FROM archived_kept WHERE archive = (SELECT MAX(number) FROM archives))

-- name: auditLiveMovements
-- Movements that are not in an archive: old ones, which are rows of `journal`, and newer ones, which come from the
-- records of groups.
CREATE TEMP VIEW live_movements AS
SELECT chain, batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at FROM journal
WHERE batch > COALESCE((SELECT n FROM archived_chains WHERE archive = (SELECT MAX(number) FROM archives) AND archived_chains.chain = journal.chain), 0)
UNION ALL
SELECT chain, batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at FROM group_movements

-- name: auditMovementsTable
-- The movements that are stored in the records of groups, one row each.
CREATE TEMP TABLE group_movements (
  chain TEXT, batch BIGINT, position BIGINT, kind TEXT, id TEXT, account TEXT, counterparty TEXT,
  amount BIGINT, charged BIGINT, fee BIGINT, drawn BIGINT, price TEXT, at BIGINT
)

-- name: auditMovements
-- These, and the archived movements of calls that were open at the end of the archive.
CREATE TEMP VIEW movements AS
SELECT chain, batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at FROM live_movements
UNION ALL
SELECT chain, batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at FROM archived_movements
WHERE archive = (SELECT MAX(number) FROM archives)

-- name: auditNegative
SELECT id, available, locked FROM (
  SELECT id, available, locked FROM accounts
  UNION ALL
  SELECT account, available, locked FROM account_stripes
) AS parts
WHERE locked < 0 OR (available < 0 AND id NOT LIKE 'treasury:%')
ORDER BY id LIMIT 20

-- name: auditOrphans
SELECT journal.chain, journal.batch, journal.position FROM journal
LEFT JOIN journal_batches ON journal_batches.chain = journal.chain AND journal_batches.n = journal.batch
WHERE (journal_batches.n IS NULL OR journal_batches.movements IS NOT NULL)
  AND journal.batch > COALESCE((SELECT n FROM archived_chains WHERE archive = (SELECT MAX(number) FROM archives) AND archived_chains.chain = journal.chain), 0)
ORDER BY journal.chain, journal.batch, journal.position LIMIT 20

-- name: auditOverdue
SELECT id, expires_at FROM live_locks WHERE state = 'held' AND expires_at < $1 ORDER BY expires_at LIMIT 20

-- name: auditPrices
SELECT id, provider, service, rates FROM prices WHERE id > $1 ORDER BY id LIMIT $2

-- name: auditRefunds
-- Refunds, and the shares of them that providers bore, of calls that are rows: each goes to the account that paid the
-- call, or comes from the earnings of its provider, and is at most the part of the charge that this side paid or got.
SELECT transfers.id, transfers.amount FROM transfers
JOIN locks ON locks.id = SUBSTR(transfers.id, 8)
WHERE transfers.id LIKE 'refund:%'
  AND (transfers.amount > locks.charged OR transfers.to_account <> 'escrow:' || locks.account)
UNION ALL
SELECT transfers.id, transfers.amount FROM transfers
JOIN locks ON locks.id = SUBSTR(transfers.id, 14)
WHERE transfers.id LIKE 'refund-share:%'
  AND (transfers.amount > locks.charged - locks.fee OR transfers.from_account <> 'earnings:' || locks.provider
    OR NOT EXISTS (SELECT 1 FROM transfers AS whole WHERE whole.id = 'refund:' || locks.id AND whole.amount >= transfers.amount))
ORDER BY 1 LIMIT 20

-- name: auditRows
SELECT batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at FROM journal
WHERE chain = $1 AND batch BETWEEN $2 AND $3 ORDER BY batch, position

-- name: auditSettled
SELECT id, amount, lendable, prices, price, charged, shortfall, fee, fee_bps, usage, detail FROM live_locks
WHERE state = 'settled' AND id > $1 ORDER BY id LIMIT $2

-- name: auditSum
SELECT CAST(COALESCE(SUM(available), 0) + COALESCE(SUM(locked), 0) AS BIGINT) AS total, COUNT(*) AS legs FROM entries

-- name: auditTotals
SELECT COUNT(DISTINCT id) AS accounts,
  CAST(COALESCE(SUM(CASE WHEN id LIKE 'escrow:%' THEN available ELSE 0 END), 0) AS BIGINT) AS escrow_available,
  CAST(COALESCE(SUM(locked), 0) AS BIGINT) AS escrow_locked,
  CAST(COALESCE(SUM(CASE WHEN id LIKE 'earnings:%' THEN available ELSE 0 END), 0) AS BIGINT) AS earnings,
  CAST(COALESCE(SUM(CASE WHEN id = 'fees' THEN available ELSE 0 END), 0) AS BIGINT) AS fees,
  CAST(COALESCE(SUM(CASE WHEN id = 'suspense' THEN available ELSE 0 END), 0) AS BIGINT) AS suspense,
  CAST(COALESCE(SUM(CASE WHEN id LIKE 'treasury:%' THEN available ELSE 0 END), 0) AS BIGINT) AS treasury
FROM (
  SELECT id, available, locked FROM accounts
  UNION ALL
  SELECT account, available, locked FROM account_stripes
) AS parts

-- name: auditTransfers
-- Transfers that differ from the journal. Those of the time of an archive are compared with its digest.
SELECT id
FROM (
  SELECT id, 1 AS written, 0 AS told, from_account, to_account, amount, at FROM transfers
  WHERE at >= (SELECT COALESCE(MAX(ends_at), 0) FROM archives)
  UNION ALL
  SELECT id, 0, 1, account, counterparty, amount, at FROM movements WHERE kind = 'transfer'
) AS both_sides
GROUP BY id
HAVING SUM(written) <> 1 OR SUM(told) <> 1
  OR MIN(from_account) <> MAX(from_account) OR MIN(to_account) <> MAX(to_account) OR MIN(amount) <> MAX(amount) OR MIN(at) <> MAX(at)
ORDER BY id LIMIT 20

-- name: pgAuditBudgets
-- The same as auditBudgets, for PostgreSQL.
SELECT id, CAST(SUM(spent) AS BIGINT) AS spent, CAST(SUM(locked) AS BIGINT) AS locked
FROM (
  SELECT id, spent, locked FROM budget_sums
  UNION ALL
  SELECT one, -charged, CASE state WHEN 'held' THEN lent - amount ELSE 0 END
  FROM live_locks, unnest(string_to_array(budget, ' ')) AS one
  WHERE budget IS NOT NULL
  UNION ALL
  SELECT one, -charged, 0 FROM archived_spending, unnest(string_to_array(budget, ' ')) AS one
  WHERE archive <= (SELECT MAX(number) FROM archives)
) AS both_sides
GROUP BY id HAVING SUM(spent) <> 0 OR SUM(locked) <> 0
ORDER BY id LIMIT 20

-- name: pgAuditInsertMovements
-- Inserts the movements of every record, except unreadable records ($1, $2). A movement may lack its last fields, which
-- become 0 or NULL.
INSERT INTO group_movements (chain, batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at)
SELECT chain, n, position, fields[1], fields[2], fields[3], fields[4], CAST(fields[5] AS BIGINT), CAST(COALESCE(fields[6], '0') AS BIGINT),
  CAST(COALESCE(fields[7], '0') AS BIGINT), CAST(COALESCE(fields[8], '0') AS BIGINT), fields[9], at
FROM (
  SELECT b.chain, b.n, b.at, r.position - 1 AS position, ARRAY(SELECT json_array_elements_text(r.fields)) AS fields
  FROM journal_batches AS b CROSS JOIN LATERAL json_array_elements(CAST(b.movements AS JSON)) WITH ORDINALITY AS r (fields, position)
  WHERE NOT EXISTS (SELECT 1 FROM unnest($1::text[], $2::bigint[]) AS unreadable (chain, n) WHERE unreadable.chain = b.chain AND unreadable.n = b.n)
    AND b.n > COALESCE((SELECT n FROM archived_chains WHERE archive = (SELECT MAX(number) FROM archives) AND archived_chains.chain = b.chain), 0)
) AS told
