-- name: registeredArchives
SELECT number, name, folder, bytes, sha256, content, begins_at, ends_at, closing, spending, transfers, settled, released, expired, charged, shortfall,
  operations, made_at, dropped_at
FROM archives ORDER BY number

-- name: archivedChain
-- The end of the newest archive in chain $1.
SELECT n, hash, position FROM archived_chains
WHERE archive = (SELECT MAX(number) FROM archives) AND chain = $1

-- name: archivedUntil
SELECT COALESCE(MAX(ends_at), 0) AS until FROM archives

-- name: archivedChains
SELECT chain, n, hash, position FROM archived_chains WHERE archive = $1 ORDER BY chain

-- name: archivedBalances
SELECT account, available, locked FROM archived_balances WHERE archive = $1 AND account > $2 ORDER BY account LIMIT $3

-- name: archivedMovements
SELECT chain, batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at FROM archived_movements
WHERE archive = $1 AND (chain, batch, position) > ($2, $3, $4) ORDER BY chain, batch, position LIMIT $5

-- name: archivedKept
SELECT id FROM archived_kept WHERE archive = $1 AND id > $2 ORDER BY id LIMIT $3

-- name: archivedSpending
SELECT account, budget, charged FROM archived_spending
WHERE archive = $1 AND (account, budget) > ($2, $3) ORDER BY account, budget LIMIT $4

-- name: transfersOfPeriod
SELECT id, from_account, to_account, amount, memo, at FROM transfers WHERE at >= $1 AND at < $2 AND id > $3 ORDER BY id LIMIT $4

-- name: groupsBefore
-- The last group of each chain that was written before $1.
SELECT b.chain, b.n, b.hash FROM journal_batches AS b
JOIN (SELECT chain, MAX(n) AS n FROM journal_batches WHERE at < $1 GROUP BY chain) AS ends ON ends.chain = b.chain AND ends.n = b.n
ORDER BY b.chain

-- name: groupsOfPeriod
SELECT n, at, count, prev, hash, movements FROM journal_batches WHERE chain = $1 AND n > $2 AND n <= $3 ORDER BY n LIMIT $4

-- name: rowsOfGroups
SELECT batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at FROM journal
WHERE chain = $1 AND batch BETWEEN $2 AND $3 ORDER BY batch, position

-- name: openTrees
-- Calls that ended before $1 and must stay, because a call above or under them did not. `first` has the pairs of such a
-- call and its neighbour; the recursion goes on to all calls of their trees.
WITH RECURSIVE stay (id) AS (
  SELECT CASE WHEN child.created_at < $1 AND child.resolved_at < $1 THEN child.id ELSE above.id END
  FROM locks AS child JOIN locks AS above ON above.id = child.parent
  WHERE child.parent IS NOT NULL AND (above.created_at < $1 OR child.created_at < $1)
    AND (child.created_at < $1 AND COALESCE(child.resolved_at, $1) < $1) <> (above.created_at < $1 AND COALESCE(above.resolved_at, $1) < $1)
  UNION
  SELECT next.id FROM stay JOIN locks AS one ON one.id = stay.id JOIN locks AS next ON next.id = one.parent OR next.parent = one.id
)
SELECT stay.id FROM stay JOIN locks ON locks.id = stay.id
WHERE locks.created_at < $1 AND locks.resolved_at < $1 ORDER BY stay.id

-- name: findManyLocks
-- $1: a JSON object of arrays, each with one id.
SELECT id, account, amount, parent, depth, lendable, lent, kept, prices, budget, state, price, provider, charged, fee, fee_bps, drawn, shortfall,
  created_at, expires_at, resolved_at, lock_detail, usage, detail
FROM locks WHERE id IN (SELECT value ->> 0 FROM json_each($1))

-- name: findManyTransfers
SELECT id, from_account, to_account, amount, memo, at FROM transfers WHERE id IN (SELECT value ->> 0 FROM json_each($1))

-- name: findManyPrices
SELECT id, provider, service, rates FROM prices WHERE id IN (SELECT value ->> 0 FROM json_each($1))

-- name: stageBalances
INSERT INTO archived_balances (archive, account, available, locked)
SELECT CAST(r.value ->> 0 AS BIGINT), r.value ->> 1, CAST(r.value ->> 2 AS BIGINT), CAST(r.value ->> 3 AS BIGINT) FROM json_each($1) AS r WHERE TRUE

-- name: stageMovements
INSERT INTO archived_movements (archive, chain, batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at)
SELECT CAST(r.value ->> 0 AS BIGINT), r.value ->> 1, CAST(r.value ->> 2 AS BIGINT), CAST(r.value ->> 3 AS BIGINT), r.value ->> 4, r.value ->> 5,
  r.value ->> 6, r.value ->> 7, CAST(r.value ->> 8 AS BIGINT), CAST(r.value ->> 9 AS BIGINT), CAST(r.value ->> 10 AS BIGINT),
  CAST(r.value ->> 11 AS BIGINT), r.value ->> 12, CAST(r.value ->> 13 AS BIGINT)
FROM json_each($1) AS r WHERE TRUE

-- name: stageChains
INSERT INTO archived_chains (archive, chain, n, hash, position)
SELECT CAST(r.value ->> 0 AS BIGINT), r.value ->> 1, CAST(r.value ->> 2 AS BIGINT), r.value ->> 3, CAST(r.value ->> 4 AS BIGINT)
FROM json_each($1) AS r WHERE TRUE

-- name: stageKept
INSERT INTO archived_kept (archive, id) SELECT CAST(r.value ->> 0 AS BIGINT), r.value ->> 1 FROM json_each($1) AS r WHERE TRUE

-- name: stageSpending
INSERT INTO archived_spending (archive, account, budget, charged)
SELECT CAST(r.value ->> 0 AS BIGINT), r.value ->> 1, r.value ->> 2, CAST(r.value ->> 3 AS BIGINT) FROM json_each($1) AS r WHERE TRUE

-- name: stageIds
-- The ids were used before, so it does no harm if their archive is not finished. Both ends have the same length.
INSERT INTO archived_ids (prefix, first, last)
SELECT r.value ->> 1, r.value ->> 2, r.value ->> 3 FROM json_each($1) AS r WHERE TRUE
ON CONFLICT (prefix) DO UPDATE SET first = CASE WHEN excluded.first < archived_ids.first THEN excluded.first ELSE archived_ids.first END,
  last = CASE WHEN excluded.last > archived_ids.last THEN excluded.last ELSE archived_ids.last END

-- name: stageCalls
INSERT INTO archived_calls (archive, account, prefix, first, last)
SELECT CAST(r.value ->> 0 AS BIGINT), r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4 FROM json_each($1) AS r WHERE TRUE

-- name: stageEarnings
INSERT INTO archived_earnings (archive, provider, day, service, opening, requests, earned, flags)
SELECT CAST(r.value ->> 0 AS BIGINT), r.value ->> 1, CAST(r.value ->> 2 AS BIGINT), r.value ->> 3, r.value ->> 4, CAST(r.value ->> 5 AS BIGINT),
  CAST(r.value ->> 6 AS BIGINT), r.value ->> 7
FROM json_each($1) AS r WHERE TRUE

-- name: recordArchive
-- From here on the books begin where this archive ends.
INSERT INTO archives (number, name, folder, bytes, sha256, content, begins_at, ends_at, closing, spending, transfers, settled, released, expired, charged,
  shortfall, operations, made_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)

-- name: unstageBalances
-- Rows of archives that are not finished, or not the newest: at most $1 of them.
DELETE FROM archived_balances WHERE (archive, account) IN (
  SELECT archive, account FROM archived_balances WHERE archive <> COALESCE((SELECT MAX(number) FROM archives), 0) LIMIT $1)
RETURNING archive

-- name: unstageMovements
DELETE FROM archived_movements WHERE (archive, chain, batch, position) IN (
  SELECT archive, chain, batch, position FROM archived_movements WHERE archive <> COALESCE((SELECT MAX(number) FROM archives), 0) LIMIT $1)
RETURNING archive

-- name: unstageChains
DELETE FROM archived_chains WHERE (archive, chain) IN (
  SELECT archive, chain FROM archived_chains WHERE archive <> COALESCE((SELECT MAX(number) FROM archives), 0) LIMIT $1)
RETURNING archive

-- name: unstageKept
DELETE FROM archived_kept WHERE (archive, id) IN (
  SELECT archive, id FROM archived_kept WHERE archive <> COALESCE((SELECT MAX(number) FROM archives), 0) LIMIT $1)
RETURNING archive

-- name: unstageSpending
DELETE FROM archived_spending WHERE (account, budget, archive) IN (
  SELECT account, budget, archive FROM archived_spending WHERE archive > COALESCE((SELECT MAX(number) FROM archives), 0) LIMIT $1)
RETURNING archive

-- name: unstageCalls
DELETE FROM archived_calls WHERE (account, prefix, archive) IN (
  SELECT account, prefix, archive FROM archived_calls WHERE archive > COALESCE((SELECT MAX(number) FROM archives), 0) LIMIT $1)
RETURNING archive

-- name: unstageEarnings
DELETE FROM archived_earnings WHERE (provider, day, service, opening, archive) IN (
  SELECT provider, day, service, opening, archive FROM archived_earnings WHERE archive > COALESCE((SELECT MAX(number) FROM archives), 0) LIMIT $1)
RETURNING archive

-- name: dropLocks
-- $1: a JSON object of arrays, each with the id of a call that is in the archive.
DELETE FROM locks WHERE id IN (SELECT value ->> 0 FROM json_each($1)) AND resolved_at < $2

-- name: firstGroup
SELECT MIN(n) AS n FROM journal_batches WHERE chain = $1

-- name: dropRows
DELETE FROM journal WHERE chain = $1 AND batch <= $2

-- name: dropGroups
DELETE FROM journal_batches WHERE chain = $1 AND n <= $2

-- name: emptyGroup
-- The last archived group of a chain stays as the one that the next group follows.
UPDATE journal_batches SET movements = '[]' WHERE chain = $1 AND n = $2

-- name: noteDropped
UPDATE archives SET dropped_at = $2 WHERE number = $1

-- name: pgHoldArchives
-- Held until the connection ends. The number of the class is any that nobody else uses.
SELECT 1 AS held WHERE pg_try_advisory_lock(1416588356, 0)

-- name: findArchivedId
-- One row if a call with id $1 is in an archive. $2: its prefix and $3 the rest; both empty for an id of another form.
SELECT 1 AS found FROM archived_ids
WHERE (prefix = $1 AND first = '') OR (prefix = $2 AND first <> '' AND first <= $3 AND last >= $3)

-- name: findArchivedGap
-- The last archived id before $1 and the first after it.
SELECT MAX(CASE WHEN highest < $1 THEN highest END) AS after, MIN(CASE WHEN lowest > $1 THEN lowest END) AS before
FROM (
  SELECT CASE WHEN first = '' THEN prefix ELSE substr(prefix, 1, 16) || first END AS lowest,
    CASE WHEN first = '' THEN prefix ELSE substr(prefix, 1, 16) || last END AS highest
  FROM archived_ids
) AS ends

-- name: findArchivedCall
-- The archive that has a call. $1: the account, or '' for any. $2: the id. $3 and $4: its prefix and the rest.
SELECT archives.number, archives.name, archives.begins_at, archives.ends_at
FROM archived_calls JOIN archives ON archives.number = archived_calls.archive
WHERE ($1 = '' OR archived_calls.account = $1)
  AND ((prefix = $2 AND first = '') OR (prefix = $3 AND first <> '' AND first <= $4 AND last >= $4))
ORDER BY archives.number DESC LIMIT 1
