-- Rows whose file is not there yet, and an hour later those of a holder that may be gone. $2: JSON object whose members are arrays of one holder, those that remove their files here.
DELETE FROM blobs WHERE id IN (
  SELECT id FROM blobs WHERE expires_at <= $1 AND CASE WHEN holder IN (SELECT value ->> 0 FROM json_each($2)) THEN state = 'writing' ELSE expires_at <= $3 END
  ORDER BY expires_at LIMIT $4
)
RETURNING id
