SELECT id, provider, rates, created_at FROM prices WHERE service = $1 ORDER BY created_at, id LIMIT 1000
