INSERT INTO budget_notices (budget, spend_limit, percent, account, at, body, due_at, attempts)
SELECT $1, $2, $3, $4, $5, $6, CASE WHEN EXISTS (SELECT 1 FROM account_webhooks WHERE account = $4) THEN $5 ELSE NULL END, 0
WHERE TRUE
ON CONFLICT (budget, spend_limit, percent) DO NOTHING RETURNING percent
