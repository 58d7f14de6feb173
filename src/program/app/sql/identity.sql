-- name: adoptIdentity
INSERT INTO identity (id, receipt_key, since) VALUES (1, $1, $2)
ON CONFLICT (id) DO UPDATE SET receipt_key = excluded.receipt_key, since = excluded.since

-- name: findIdentity
SELECT receipt_key, since FROM identity

-- name: noteIdentity
-- The first gateway of a database gives it its identity. Of several that start at once, one does.
INSERT INTO identity (id, receipt_key, since) VALUES (1, $1, $2) ON CONFLICT (id) DO NOTHING
