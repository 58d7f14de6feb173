SELECT subject, rules, requests_per_minute, tokens_per_minute, daily_since, weekly_since, monthly_since, ever_since
FROM account_limits WHERE account = $1 ORDER BY subject
