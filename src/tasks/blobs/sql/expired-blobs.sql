-- Files that are there whole. Their rows go after them.
SELECT id FROM blobs WHERE expires_at <= $1 AND holder = $2 AND state = 'stored' ORDER BY expires_at LIMIT $3
