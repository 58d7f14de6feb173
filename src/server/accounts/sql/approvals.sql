-- name: decideApproval
UPDATE approvals SET state = $3, decided_at = $4, decided_by = $5
WHERE id = $1 AND account = $2 AND state = 'waiting' AND expires_at > $4
RETURNING id

-- name: findApproval
SELECT * FROM approvals WHERE key = $1 AND digest = $2

-- name: findApprovalById
SELECT approvals.*, quotes.call_id FROM approvals LEFT JOIN quotes ON quotes.id = approvals.quote
WHERE approvals.id = $1 AND approvals.account = $2

-- name: insertApproval
-- Takes the place of an earlier row of the same request if that has expired, or is $13, which the caller has seen and
-- which is of no use any more. Returns no row if another request has taken the place meanwhile, or if the key has $14
-- rows that wait, or less where other keys of the account have some: as many as it leaves free of twice as many.
INSERT INTO approvals (id, account, key, digest, primitive, service, operation, quote, amount, preview, state, created_at, expires_at)
SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS TEXT), CAST($6 AS TEXT), CAST($7 AS TEXT),
  CAST($8 AS TEXT), CAST($9 AS BIGINT), CAST($10 AS TEXT), 'waiting', CAST($11 AS BIGINT), CAST($12 AS BIGINT)
WHERE (SELECT COUNT(*) + COUNT(CASE WHEN key = CAST($3 AS TEXT) THEN 1 END) FROM approvals
  WHERE account = CAST($2 AS TEXT) AND state = 'waiting' AND expires_at > CAST($11 AS BIGINT)) < 2 * CAST($14 AS BIGINT)
ON CONFLICT (key, digest) DO UPDATE SET id = excluded.id, account = excluded.account, primitive = excluded.primitive,
  service = excluded.service, operation = excluded.operation, quote = excluded.quote, amount = excluded.amount,
  preview = excluded.preview, state = excluded.state, created_at = excluded.created_at, expires_at = excluded.expires_at,
  decided_at = NULL, decided_by = NULL
WHERE approvals.id = CAST($13 AS TEXT) OR approvals.expires_at <= CAST($11 AS BIGINT)
RETURNING id

-- name: listApprovals
SELECT approvals.*, quotes.call_id FROM approvals LEFT JOIN quotes ON quotes.id = approvals.quote
WHERE approvals.account = $1 AND (CAST($2 AS TEXT) IS NULL OR approvals.key = CAST($2 AS TEXT))
ORDER BY approvals.created_at DESC, approvals.id LIMIT $3

-- name: noteApproval
-- A notice for the webhook of the account, if it has one. It is sent like those of budgets.
INSERT INTO budget_notices (budget, spend_limit, percent, account, at, body, due_at, attempts)
SELECT CAST($1 AS TEXT), 0, 0, CAST($2 AS TEXT), CAST($3 AS BIGINT), CAST($4 AS TEXT), CAST($3 AS BIGINT), 0
WHERE EXISTS (SELECT 1 FROM account_webhooks WHERE account = CAST($2 AS TEXT))
ON CONFLICT (budget, spend_limit, percent) DO NOTHING

-- name: sweepApprovals
DELETE FROM approvals WHERE id IN (SELECT id FROM approvals WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)
RETURNING id
