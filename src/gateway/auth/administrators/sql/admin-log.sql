-- name: noteAct
INSERT INTO admin_log (id, at, actor, address, method, path, body, status) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)

-- name: endAct
UPDATE admin_log SET status = $2 WHERE id = $1

-- name: forgetRenames
-- The labels that account $1 was given, by the paths of its requests.
UPDATE admin_log SET body = $3 WHERE method = 'PATCH' AND path IN ($1, $2)

-- name: forgetCreation
-- The label with which the account was created that the body names in one of these ways.
UPDATE admin_log SET body = $4 WHERE method = 'POST' AND path = $1 AND (body LIKE $2 ESCAPE '\' OR body LIKE $3 ESCAPE '\')

-- name: listActs
SELECT l.*, k.label AS label FROM admin_log l LEFT JOIN admin_keys k ON k.id = l.actor
WHERE l.id < $1 ORDER BY l.id DESC LIMIT $2
