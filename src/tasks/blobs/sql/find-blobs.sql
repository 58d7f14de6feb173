-- $1: sources, see listParam.
SELECT id, source, account, state, bytes, type, sha256, crc32, notes, holder, lease_until, created_at, expires_at FROM blobs
WHERE expires_at > $2 AND source IN (SELECT value ->> 0 FROM json_each($1))
