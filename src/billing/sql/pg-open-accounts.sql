-- A row that does not exist cannot be locked, so the first movement of an account makes it. In id order, as they are locked.
INSERT INTO accounts (id, available, locked) SELECT id, 0, 0 FROM unnest($1::text[]) AS a (id) ORDER BY id
ON CONFLICT (id) DO NOTHING
