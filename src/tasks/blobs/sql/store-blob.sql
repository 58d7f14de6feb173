UPDATE blobs SET state = 'stored', bytes = $2, type = $3, sha256 = $4, crc32 = $5, notes = $6, expires_at = $7 WHERE id = $1 AND state = 'writing'
RETURNING id, source, account, state, bytes, type, sha256, crc32, notes, holder, lease_until, created_at, expires_at
