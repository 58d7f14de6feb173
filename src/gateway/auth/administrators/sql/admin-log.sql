-- name: noteAct
INSERT INTO admin_log (id, at, actor, address, method, path, body, status) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)

-- name: endAct
UPDATE admin_log SET status = $2 WHERE id = $1

-- name: listActs
SELECT l.*, k.label AS label FROM admin_log l LEFT JOIN admin_keys k ON k.id = l.actor
WHERE l.id < $1 ORDER BY l.id DESC LIMIT $2
