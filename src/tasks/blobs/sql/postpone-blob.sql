-- Moves a file behind all files that are expired by now.
UPDATE blobs SET expires_at = $2 WHERE id = $1 AND state = 'stored' AND expires_at <= $2 RETURNING id
