-- name: findLogPosition
SELECT position, n, hash FROM ledger_log

-- name: moveLogPosition
UPDATE ledger_log SET position = $1, n = $2, hash = $3
