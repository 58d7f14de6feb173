-- A missing row cannot be locked, so the first movement of an account creates it. Rows are created in id order, the
-- same order in which they are locked.
INSERT INTO accounts (id, available, locked) SELECT id, 0, 0 FROM unnest($1::text[]) AS a (id) ORDER BY id
ON CONFLICT (id) DO NOTHING
