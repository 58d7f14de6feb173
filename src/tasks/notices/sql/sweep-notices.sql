-- A budget without an end stays told of.
DELETE FROM budget_notices WHERE (budget, spend_limit, percent) IN
  (SELECT budget, spend_limit, percent FROM budget_notices WHERE at < $1 AND budget NOT LIKE '%:all' LIMIT $2)
RETURNING percent
