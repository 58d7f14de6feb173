SELECT subject, rules, requests_per_minute, tokens_per_minute FROM account_limits WHERE account = $1 ORDER BY subject
