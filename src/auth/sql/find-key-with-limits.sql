SELECT api_keys.*, l.subject, l.rules, l.requests_per_minute AS account_requests, l.tokens_per_minute AS account_tokens,
  l.daily_since, l.weekly_since, l.monthly_since, l.ever_since
FROM api_keys LEFT JOIN account_limits AS l ON l.account = api_keys.account AND l.subject IN ('account', 'operator', api_keys.member)
WHERE hash = $1 AND (api_keys.member IS NULL OR EXISTS (SELECT 1 FROM members
  WHERE members.account = api_keys.account AND members.member = api_keys.member AND members.role <> 'viewer'))
ORDER BY l.subject
