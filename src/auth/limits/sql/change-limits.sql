-- Replaces the given fields in one statement, so that two concurrent changes do not undo each other. $4, $6 and $8 say
-- which fields are given. Only a member can have its own limits. If $11 is given, the member must have that role now. A
-- new reset gets the current time as its start. Spending from before that time is looked up.
INSERT INTO account_limits (account, subject, name, rules, notifies, requests_per_minute, tokens_per_minute, since,
  daily_since, weekly_since, monthly_since, ever_since)
SELECT $1, $2, $3, $5, $10, $7, $9, $12, $12, $12, $12, $12 WHERE $2 IN ('account', 'operator') OR EXISTS (SELECT 1 FROM members
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
  tokens_per_minute = CASE WHEN $8 = 1 THEN excluded.tokens_per_minute ELSE account_limits.tokens_per_minute END
RETURNING subject, rules, requests_per_minute, tokens_per_minute, daily_since, weekly_since, monthly_since, ever_since
