SELECT id, provider, service, rates, created_at FROM prices WHERE id = $1
