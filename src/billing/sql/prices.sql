-- name: putPrice
INSERT INTO prices (id, provider, service, rates, created_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (id) DO NOTHING

-- name: findPrice
SELECT id, provider, service, rates, created_at FROM prices WHERE id = $1
