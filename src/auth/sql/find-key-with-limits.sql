SELECT api_keys.*, l.subject, l.budgets, l.requests_per_minute AS account_requests, l.tokens_per_minute AS account_tokens
FROM api_keys LEFT JOIN account_limits AS l ON l.account = api_keys.account AND l.subject IN ('account', 'operator')
WHERE hash = $1 ORDER BY l.subject
