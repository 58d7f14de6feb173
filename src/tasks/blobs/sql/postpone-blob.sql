-- Behind the files that are past their time by now.
UPDATE blobs SET expires_at = $2 WHERE id = $1 AND state = 'stored' AND expires_at <= $2 RETURNING id
