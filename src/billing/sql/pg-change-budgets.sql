UPDATE budgets SET spent = budgets.spent + c.spent, locked = budgets.locked + c.locked
FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS c (id, spent, locked)
WHERE budgets.id = c.id
