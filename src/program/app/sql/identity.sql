-- name: addFormerSeed
INSERT INTO former_seeds (receipt_key, sealed, since, until) VALUES ($1, $2, $3, $4)
ON CONFLICT (receipt_key) DO UPDATE SET sealed = excluded.sealed

-- name: adoptIdentity
INSERT INTO identity (id, receipt_key, since) VALUES (1, $1, $2)
ON CONFLICT (id) DO UPDATE SET receipt_key = excluded.receipt_key, since = excluded.since

-- name: findIdentity
SELECT receipt_key, since FROM identity

-- name: forgetFormerSeeds
DELETE FROM former_seeds

-- name: listFormerSeeds
SELECT receipt_key, sealed, since, until FROM former_seeds ORDER BY until, receipt_key

-- name: noteIdentity
-- The first gateway of a database gives it its identity. Of several that start at once, one does.
INSERT INTO identity (id, receipt_key, since) VALUES (1, $1, $2) ON CONFLICT (id) DO NOTHING

-- name: replaceIdentity
-- Of several gateways that replace it at once, one does.
UPDATE identity SET receipt_key = $1, since = $2 WHERE receipt_key = $3
