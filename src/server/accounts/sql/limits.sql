-- name: changeLimits
-- Replaces the given fields in one statement, so that two concurrent changes do not undo each other. $4, $6, $8, $13,
-- $15, $17 and $19 say which fields are given. Only a member can have its own limits. If $11 is given, the member must have that role
-- now. A new reset gets the current time as its start. Spending from before that time is looked up.
INSERT INTO account_limits (account, subject, name, rules, notifies, requests_per_minute, tokens_per_minute, since,
  daily_since, weekly_since, monthly_since, ever_since, allowed_services, ask_above, tags, tag_rules)
SELECT $1, $2, $3, $5, $10, $7, $9, $12, $12, $12, $12, $12, $14, $16, $18, $20 WHERE $2 IN ('account', 'operator') OR EXISTS (SELECT 1 FROM members
  WHERE members.account = $1 AND members.member = $2 AND (CAST($11 AS TEXT) IS NULL OR members.role = $11))
ON CONFLICT (account, subject) DO UPDATE SET
  rules = CASE WHEN $4 = 1 THEN excluded.rules ELSE account_limits.rules END,
  since = CASE WHEN $4 = 1 AND excluded.rules <> account_limits.rules THEN excluded.since ELSE account_limits.since END,
  daily_since = CASE WHEN $4 = 1 AND account_limits.rules NOT LIKE '%"reset":"daily"%' THEN excluded.since ELSE account_limits.daily_since END,
  weekly_since = CASE WHEN $4 = 1 AND account_limits.rules NOT LIKE '%"reset":"weekly"%' THEN excluded.since ELSE account_limits.weekly_since END,
  monthly_since = CASE WHEN $4 = 1 AND account_limits.rules NOT LIKE '%"reset":"monthly"%' THEN excluded.since ELSE account_limits.monthly_since END,
  ever_since = CASE WHEN $4 = 1 AND account_limits.rules NOT LIKE '%"reset":null%' THEN excluded.since ELSE account_limits.ever_since END,
  notifies = CASE WHEN $4 = 1 THEN excluded.notifies ELSE account_limits.notifies END,
  requests_per_minute = CASE WHEN $6 = 1 THEN excluded.requests_per_minute ELSE account_limits.requests_per_minute END,
  tokens_per_minute = CASE WHEN $8 = 1 THEN excluded.tokens_per_minute ELSE account_limits.tokens_per_minute END,
  allowed_services = CASE WHEN $13 = 1 THEN excluded.allowed_services ELSE account_limits.allowed_services END,
  ask_above = CASE WHEN $15 = 1 THEN excluded.ask_above ELSE account_limits.ask_above END,
  tags = CASE WHEN $17 = 1 THEN excluded.tags ELSE account_limits.tags END,
  tag_rules = CASE WHEN $19 = 1 THEN excluded.tag_rules ELSE account_limits.tag_rules END
RETURNING subject, rules, requests_per_minute, tokens_per_minute, daily_since, weekly_since, monthly_since, ever_since, allowed_services, ask_above, tags, tag_rules

-- name: deleteNoLimits
DELETE FROM account_limits WHERE account = $1 AND subject = $2 AND rules = '[]' AND requests_per_minute IS NULL AND tokens_per_minute IS NULL
  AND allowed_services IS NULL AND ask_above IS NULL AND tags IS NULL AND tag_rules = '[]'

-- name: findCarriedSum
SELECT edge, settled, spent, running, as_of FROM carried_sums WHERE budget = $1

-- name: forgetCarriedSums
DELETE FROM carried_sums WHERE ends_at < $1

-- name: keepCarriedSum
INSERT INTO carried_sums (budget, edge, settled, spent, running, as_of, ends_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (budget) DO UPDATE SET
  edge = excluded.edge, settled = excluded.settled, spent = excluded.spent, running = excluded.running, as_of = excluded.as_of
WHERE carried_sums.as_of < excluded.as_of

-- name: listLimits
SELECT subject, rules, requests_per_minute, tokens_per_minute, daily_since, weekly_since, monthly_since, ever_since, allowed_services, ask_above, tags, tag_rules
FROM account_limits WHERE account = $1 ORDER BY subject
