UPDATE blobs SET lease_until = $2, bytes = $3 WHERE id = $1 AND state = 'writing' RETURNING id
