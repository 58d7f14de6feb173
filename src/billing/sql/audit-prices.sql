SELECT id, provider, service, rates FROM prices WHERE id > $1 ORDER BY id LIMIT $2
