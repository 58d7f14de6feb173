-- Removes expired rows without a complete file, and, an hour later, rows of other stores, which may not exist any more.
-- $2: the stores whose files this gateway removes, see listParam.
DELETE FROM blobs WHERE id IN (
  SELECT id FROM blobs WHERE expires_at <= $1 AND CASE WHEN holder IN (SELECT value ->> 0 FROM json_each($2)) THEN state = 'writing' ELSE expires_at <= $3 END
  ORDER BY expires_at LIMIT $4
)
RETURNING id
