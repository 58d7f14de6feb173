SELECT l.*, k.label AS label FROM admin_log l LEFT JOIN admin_keys k ON k.id = l.actor
WHERE l.id < $1 ORDER BY l.id DESC LIMIT $2
