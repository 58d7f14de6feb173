-- name: claimDue
-- A gateway claims a notice by moving `due_at`, and owns it until that time. In turns of accounts: at most $4 of one, and
-- none of those in $5, see listParam.
UPDATE budget_notices SET due_at = $2, attempts = attempts + 1
WHERE due_at <= $1 AND (budget, spend_limit, percent) IN
  (SELECT budget, spend_limit, percent FROM (
    SELECT budget, spend_limit, percent, due_at, row_number() OVER (PARTITION BY account ORDER BY due_at) AS turn
    FROM budget_notices WHERE due_at <= $1 AND account NOT IN (SELECT value ->> 0 FROM json_each($5))
  ) AS due WHERE turn <= $4 ORDER BY turn, due_at LIMIT $3)
RETURNING budget, spend_limit, percent, account, body, attempts

-- name: deleteWebhook
DELETE FROM account_webhooks WHERE account = $1 RETURNING account

-- name: dropOldNotices
-- Those of budget $1 but for the newest 100: its limit can be changed any number of times.
DELETE FROM budget_notices WHERE budget = $1
  AND at < (SELECT at FROM budget_notices AS newest WHERE budget = $1 ORDER BY at DESC LIMIT 1 OFFSET 99)

-- name: endAttempt
UPDATE budget_notices SET due_at = $4 WHERE budget = $1 AND spend_limit = $2 AND percent = $3

-- name: findWebhook
SELECT sealed FROM account_webhooks WHERE account = $1

-- name: listAccountWebhooks
SELECT account, sealed FROM account_webhooks

-- name: listNotices
SELECT body, due_at FROM budget_notices WHERE account = $1 AND budget NOT LIKE 'apr_%' ORDER BY at DESC, budget, percent DESC LIMIT $2

-- name: note
INSERT INTO budget_notices (budget, spend_limit, percent, account, at, body, due_at, attempts)
SELECT $1, $2, $3, $4, $5, $6, (SELECT CAST($7 AS BIGINT) FROM account_webhooks WHERE account = $4), 0
WHERE TRUE
ON CONFLICT (budget, spend_limit, percent) DO NOTHING RETURNING percent

-- name: putWebhook
INSERT INTO account_webhooks (account, sealed) VALUES ($1, $2)
ON CONFLICT (account) DO UPDATE SET sealed = excluded.sealed

-- name: replaceSealedWebhook
-- Only while the account has not stored another one.
UPDATE account_webhooks SET sealed = $3 WHERE account = $1 AND sealed = $2 RETURNING account

-- name: sweepNotices
-- Notices of budgets without an end (`:all`) stay as long as their key or limit does, so that they are not sent again.
-- Those of calls that waited for a person go before $3.
DELETE FROM budget_notices WHERE (budget, spend_limit, percent) IN (
  SELECT budget, spend_limit, percent FROM budget_notices AS old WHERE (at < $1 AND (budget NOT LIKE '%:all' OR (
      NOT EXISTS (SELECT 1 FROM api_keys WHERE hash = REPLACE(old.budget, ':all', ''))
      AND NOT EXISTS (SELECT 1 FROM account_limits AS l WHERE l.account = old.account AND l.name || ':all' = old.budget)
    ))) OR (at < $3 AND budget LIKE 'apr_%') LIMIT $2)
RETURNING percent

-- name: watchedKeys
-- Keys with notices, with the counters of their limits for the periods $1 to $3. A key without a counter may have spent
-- money before its limit got its period.
SELECT k.hash, k.account, k.label, k.spend_limit, k.limit_reset, k.limit_soft, k.limit_notify, k.limit_by, k.counted_since, b.spent,
  COALESCE(k.limit_since, (SELECT applied_at FROM migrations WHERE name = '0035_who-set-a-limit')) AS since
FROM api_keys AS k LEFT JOIN budget_sums AS b
  ON b.id = k.hash || ':' || CASE k.limit_reset WHEN 'daily' THEN $1 WHEN 'weekly' THEN $2 WHEN 'monthly' THEN $3 ELSE 'all' END
WHERE k.limit_notify IS NOT NULL AND k.spend_limit IS NOT NULL AND k.hash > $4 AND (b.id IS NOT NULL OR k.counted_since IS NOT NULL)
ORDER BY k.hash LIMIT $5

-- name: watchedLimits
-- Budgets of accounts and members with notices, with what was spent of each in the periods $1 to $3.
SELECT l.account, l.subject, l.rules, l.daily_since, l.weekly_since, l.monthly_since, l.ever_since, d.spent AS daily, w.spent AS weekly, m.spent AS monthly, a.spent AS ever,
  COALESCE(l.since, (SELECT applied_at FROM migrations WHERE name = '0035_who-set-a-limit')) AS since
FROM account_limits AS l
LEFT JOIN budget_sums AS d ON d.id = l.name || ':' || $1
LEFT JOIN budget_sums AS w ON w.id = l.name || ':' || $2
LEFT JOIN budget_sums AS m ON m.id = l.name || ':' || $3
LEFT JOIN budget_sums AS a ON a.id = l.name || ':all'
WHERE l.notifies = 1 AND (l.account, l.subject) > ($4, $5)
ORDER BY l.account, l.subject LIMIT $6
