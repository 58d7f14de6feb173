-- A gateway claims a notice by moving `due_at`, and owns it until that time.
UPDATE budget_notices SET due_at = $2, attempts = attempts + 1
WHERE due_at <= $1 AND (budget, spend_limit, percent) IN
  (SELECT budget, spend_limit, percent FROM budget_notices WHERE due_at <= $1 ORDER BY due_at LIMIT $3)
RETURNING budget, spend_limit, percent, account, body, attempts
