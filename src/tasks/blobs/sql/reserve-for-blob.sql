UPDATE blobs SET reserved = $2 WHERE id = $1 AND state = 'writing' RETURNING id
