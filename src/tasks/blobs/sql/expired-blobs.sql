-- A holder removes its own files. Rows of one that is gone are removed by anybody, an hour later.
DELETE FROM blobs WHERE id IN (SELECT id FROM blobs WHERE expires_at <= $1 AND (holder = $2 OR expires_at <= $3) ORDER BY expires_at LIMIT $4)
RETURNING id, holder
