INSERT INTO admin_log (id, at, actor, address, method, path, body, status) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
