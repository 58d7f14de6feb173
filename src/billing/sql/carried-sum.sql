-- name: carriedByCalls
-- The sums of what calls of account $1 were charged and hold, if they began at $2 or later and do not count in budget
-- $3 ($3 has a space on each side). $4: only calls that count in a budget of this name (a space before it, a colon
-- after it); '' takes all calls. $5: also the calls of the keys of this member; '' takes no others. $7 is the start of
-- the period: a call under other calls counts as begun when the topmost call began. Result: all calls that began before
-- `edge` have ended, and `edge` is at most $6. `settled` is the charges of those calls.
WITH calls AS (
  SELECT created_at, charged, CASE state WHEN 'held' THEN 1 ELSE 0 END AS running, CASE state WHEN 'held' THEN amount - lent ELSE 0 END AS locked
  FROM locks
  WHERE account = $1 AND created_at >= $2
    -- A call that is in an archive may not be dropped yet.
    AND (resolved_at IS NULL OR resolved_at >= (SELECT COALESCE(MAX(ends_at), 0) FROM archives) OR id IN (SELECT id FROM archived_kept WHERE archive = (SELECT MAX(number) FROM archives)))
    AND replace(' ' || COALESCE(budget, '') || ' ', $3, '') = ' ' || COALESCE(budget, '') || ' '
    AND ($4 = '' OR replace(' ' || COALESCE(budget, ''), $4, '') <> ' ' || COALESCE(budget, '')
      OR ($5 <> '' AND substr(budget, 1, 64) IN (SELECT hash FROM api_keys WHERE account = $1 AND member = $5)))
    AND (parent IS NULL OR $7 <= (
      WITH RECURSIVE above (parent, created_at) AS (
        SELECT one.parent, one.created_at FROM locks AS one WHERE one.id = locks.parent
        UNION ALL SELECT one.parent, one.created_at FROM above JOIN locks AS one ON one.id = above.parent)
      SELECT MIN(above.created_at) FROM above))
  UNION ALL
  -- Calls in archives, which all ended. They count if the whole time counts, because limits with a period begin later.
  SELECT 0, charged, 0, 0 FROM archived_spending
  WHERE account = $1 AND $2 = 0 AND archive <= (SELECT MAX(number) FROM archives)
    AND replace(' ' || budget || ' ', $3, '') = ' ' || budget || ' '
    AND ($4 = '' OR replace(' ' || budget, $4, '') <> ' ' || budget
      OR ($5 <> '' AND substr(budget, 1, 64) IN (SELECT hash FROM api_keys WHERE account = $1 AND member = $5)))
),
edges AS (SELECT COALESCE(MIN(created_at), $6) AS edge FROM calls WHERE running = 1 AND created_at < $6)
SELECT edge, CAST(COALESCE(SUM(charged), 0) AS BIGINT) AS spent, CAST(COALESCE(SUM(locked), 0) AS BIGINT) AS locked,
  CAST(COALESCE(SUM(running), 0) AS BIGINT) AS running, CAST(COALESCE(SUM(CASE WHEN created_at < edge THEN charged ELSE 0 END), 0) AS BIGINT) AS settled
FROM edges LEFT JOIN calls ON 1 = 1
GROUP BY edge

-- name: carriedOfTag
-- The same of the calls with the tag $4, as JSON writes it: "name":"value". $5: at most this edge. $6: the start of the
-- period. A call under other calls counts by the tags and the time of the topmost call, whose lock pays for it.
-- lock_detail is compared as text, because PostgreSQL refuses to parse some texts (U+0000). Its last member has the
-- tags, and JSON escapes the quotes in its texts, so nothing else of it can be taken for a tag. PostgreSQL names instr
-- strpos.
WITH calls AS (
  SELECT created_at, charged, CASE state WHEN 'held' THEN 1 ELSE 0 END AS running, CASE state WHEN 'held' THEN amount - lent ELSE 0 END AS locked
  FROM locks
  WHERE account = $1 AND created_at >= $2
    AND (resolved_at IS NULL OR resolved_at >= (SELECT COALESCE(MAX(ends_at), 0) FROM archives) OR id IN (SELECT id FROM archived_kept WHERE archive = (SELECT MAX(number) FROM archives)))
    AND replace(' ' || COALESCE(budget, '') || ' ', $3, '') = ' ' || COALESCE(budget, '') || ' '
    AND CASE WHEN parent IS NULL THEN instr(lock_detail, '"tags":{') > 0 AND instr(substr(lock_detail, instr(lock_detail, '"tags":{')), $4) > 0 ELSE EXISTS (
      WITH RECURSIVE above (parent, created_at, lock_detail) AS (
        SELECT one.parent, one.created_at, one.lock_detail FROM locks AS one WHERE one.id = locks.parent
        UNION ALL SELECT one.parent, one.created_at, one.lock_detail FROM above JOIN locks AS one ON one.id = above.parent)
      SELECT 1 FROM above WHERE above.parent IS NULL AND above.created_at >= $6 AND instr(above.lock_detail, '"tags":{') > 0
        AND instr(substr(above.lock_detail, instr(above.lock_detail, '"tags":{')), $4) > 0) END
),
edges AS (SELECT COALESCE(MIN(created_at), $5) AS edge FROM calls WHERE running = 1 AND created_at < $5)
SELECT edge, CAST(COALESCE(SUM(charged), 0) AS BIGINT) AS spent, CAST(COALESCE(SUM(locked), 0) AS BIGINT) AS locked,
  CAST(COALESCE(SUM(running), 0) AS BIGINT) AS running, CAST(COALESCE(SUM(CASE WHEN created_at < edge THEN charged ELSE 0 END), 0) AS BIGINT) AS settled
FROM edges LEFT JOIN calls ON 1 = 1
GROUP BY edge

-- name: hasManyCalls
-- One row if account $1 has more than $3 calls that began at $2 or later.
SELECT 1 AS many FROM locks WHERE account = $1 AND created_at >= $2 ORDER BY created_at LIMIT 1 OFFSET $3

-- name: carriedOfKey
-- What a key has spent and locked in total, minus what budget $2 counts. Each call of a key counts in one of the
-- budgets `$1:<period>`. For the range of ids see spentOfBudgets in ledger.sql.
SELECT CAST(COALESCE(SUM(spent), 0) AS BIGINT) AS spent, CAST(COALESCE(SUM(locked), 0) AS BIGINT) AS locked FROM budget_sums
WHERE id >= $1 AND id < $1 || 'z' AND substr(id, 1, length($1) + 1) = $1 || ':' AND id <> $2

-- name: carriedOfAccount
-- What account $1 (with its prefix) has spent and locked in total, minus what budget $2 counts. It is derived from
-- balances, because the account may have millions of calls: see accountTotals in account-records.sql.
SELECT CAST(paid_in - paid_out - available - locked - own_spent AS BIGINT) AS spent, CAST(locked - own_locked AS BIGINT) AS locked
FROM (SELECT
  COALESCE((SELECT SUM(amount) FROM transfers WHERE to_account = $1), 0) AS paid_in,
  COALESCE((SELECT SUM(amount) FROM transfers WHERE from_account = $1), 0) AS paid_out,
  COALESCE((SELECT available FROM accounts WHERE id = $1), 0) + COALESCE((SELECT SUM(available) FROM account_stripes WHERE account = $1), 0) AS available,
  COALESCE((SELECT locked FROM accounts WHERE id = $1), 0) + COALESCE((SELECT SUM(locked) FROM account_stripes WHERE account = $1), 0) AS locked,
  COALESCE((SELECT spent FROM budget_sums WHERE id = $2), 0) AS own_spent,
  COALESCE((SELECT locked FROM budget_sums WHERE id = $2), 0) AS own_locked) AS figures
