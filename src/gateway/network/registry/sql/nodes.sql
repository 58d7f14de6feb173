-- name: bumpClock
UPDATE registry_clock SET version = version + 1

-- name: pgBumpClock
-- A process that freezes while it has the lock of this row blocks all gateways, so the server ends its transaction
-- after 3 s.
UPDATE registry_clock SET version = version + 1 RETURNING set_config('idle_in_transaction_session_timeout', '3000', true)

-- name: pollClock
SELECT c.version, n.id, n.url, n.beat FROM registry_clock c LEFT JOIN nodes n ON TRUE

-- name: putNode
INSERT INTO nodes (id, url, beat, started_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (id) DO UPDATE SET url = excluded.url, beat = nodes.beat + 1

-- name: deleteNode
DELETE FROM nodes WHERE id = $1

-- name: deleteSilentNode
DELETE FROM nodes WHERE id = $1 AND beat = $2

-- name: deletePredecessors
-- Only one process can have an address at a time, and the embedded database ($3 = 1) has only one gateway.
DELETE FROM nodes WHERE id <> $1 AND (url = $2 OR CAST($3 AS BIGINT) = 1)
