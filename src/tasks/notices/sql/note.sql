INSERT INTO budget_notices (budget, spend_limit, percent, account, at, body, due_at, attempts)
SELECT $1, $2, $3, $4, $5, $6, (SELECT CAST($7 AS BIGINT) FROM account_webhooks WHERE account = $4), 0
WHERE TRUE
ON CONFLICT (budget, spend_limit, percent) DO NOTHING RETURNING percent
