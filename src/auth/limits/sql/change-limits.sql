-- What is given is replaced, in one statement: of two changes at once none undoes the other. $4, $6 and $8 say what is given.
INSERT INTO account_limits (account, subject, name, rules, notifies, requests_per_minute, tokens_per_minute) VALUES ($1, $2, $3, $5, $10, $7, $9)
ON CONFLICT (account, subject) DO UPDATE SET
  rules = CASE WHEN $4 = 1 THEN excluded.rules ELSE account_limits.rules END,
  notifies = CASE WHEN $4 = 1 THEN excluded.notifies ELSE account_limits.notifies END,
  requests_per_minute = CASE WHEN $6 = 1 THEN excluded.requests_per_minute ELSE account_limits.requests_per_minute END,
  tokens_per_minute = CASE WHEN $8 = 1 THEN excluded.tokens_per_minute ELSE account_limits.tokens_per_minute END
RETURNING subject, rules, requests_per_minute, tokens_per_minute
