-- Expired files that are complete. Each row is removed after its file.
SELECT id FROM blobs WHERE expires_at <= $1 AND holder = $2 AND state = 'stored' ORDER BY expires_at LIMIT $3
