-- Notices of budgets without an end (`:all`) stay, so that they are not sent again.
DELETE FROM budget_notices WHERE (budget, spend_limit, percent) IN
  (SELECT budget, spend_limit, percent FROM budget_notices WHERE at < $1 AND budget NOT LIKE '%:all' LIMIT $2)
RETURNING percent
