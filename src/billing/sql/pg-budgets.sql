SELECT id, spent, locked FROM budgets
WHERE id = ANY (ARRAY(SELECT unnest($1::text[]) UNION SELECT unnest(string_to_array(budget, ' ')) FROM locks WHERE id = ANY ($2::text[]) AND budget IS NOT NULL))
ORDER BY id FOR UPDATE
