-- $1: JSON array of sources.
SELECT id, source, account, state, bytes, type, sha256, crc32, notes, holder, lease_until, created_at, expires_at FROM blobs
WHERE expires_at > $2 AND source IN (SELECT value FROM json_each($1))
