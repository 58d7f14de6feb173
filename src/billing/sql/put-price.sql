INSERT INTO prices (id, provider, service, rates, created_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (id) DO NOTHING
