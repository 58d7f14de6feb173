UPDATE budget_notices SET due_at = $4 WHERE budget = $1 AND spend_limit = $2 AND percent = $3
