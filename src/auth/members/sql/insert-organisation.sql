-- None where its maker has made $5 already.
INSERT INTO consumers (account, label, created_at, made_by)
SELECT $1, $2, $3, $4 WHERE (SELECT COUNT(*) FROM consumers WHERE made_by = $4) < $5 RETURNING account
