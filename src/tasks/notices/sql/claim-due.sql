-- Whoever moves `due_at` has taken the notice for so long.
UPDATE budget_notices SET due_at = $2, attempts = attempts + 1
WHERE due_at <= $1 AND (budget, spend_limit, percent) IN
  (SELECT budget, spend_limit, percent FROM budget_notices WHERE due_at <= $1 ORDER BY due_at LIMIT $3)
RETURNING budget, spend_limit, percent, account, body, attempts
