-- name: putNote
INSERT INTO account_notes (id, account, at, administrator, text) VALUES ($1, $2, $3, $4, $5) RETURNING id

-- name: listNotes
SELECT n.id, n.at, COALESCE(k.label, n.administrator) AS administrator, n.text
FROM account_notes n LEFT JOIN admin_keys k ON k.id = n.administrator
WHERE n.account = $1 ORDER BY n.at DESC, n.id LIMIT $2 OFFSET $3

-- name: deleteNote
DELETE FROM account_notes WHERE account = $1 AND id = $2 RETURNING id
