-- A missing row cannot be locked, so the first use of a budget creates it.
INSERT INTO budgets (id, spent, locked) SELECT id, 0, 0 FROM unnest($1::text[]) AS b (id) ORDER BY id
ON CONFLICT (id) DO NOTHING
