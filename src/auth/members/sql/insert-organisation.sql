-- No row if its creator has created $5 organisations already.
INSERT INTO consumers (account, label, created_at, made_by)
SELECT $1, $2, $3, $4 WHERE (SELECT COUNT(*) FROM consumers WHERE made_by = $4) < $5 RETURNING account
