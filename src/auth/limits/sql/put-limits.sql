INSERT INTO account_limits (account, subject, name, budgets, requests_per_minute, tokens_per_minute, notifies) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (account, subject) DO UPDATE SET budgets = excluded.budgets, requests_per_minute = excluded.requests_per_minute,
  tokens_per_minute = excluded.tokens_per_minute, notifies = excluded.notifies
