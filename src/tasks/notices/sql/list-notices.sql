SELECT body, due_at FROM budget_notices WHERE account = $1 ORDER BY at DESC, budget, percent DESC LIMIT $2
