SELECT id, spent, locked FROM budgets WHERE id = $1
