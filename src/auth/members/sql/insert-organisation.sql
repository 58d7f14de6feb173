-- No row if its creator has created $5 organisations already, or if another account has the label $2 or is named so ($6).
INSERT INTO consumers (account, label, created_at, made_by)
SELECT $1, $2, $3, $4 WHERE (SELECT COUNT(*) FROM consumers WHERE made_by = $4) < $5 AND NOT EXISTS (
  SELECT 1 FROM consumers AS others WHERE LOWER(others.label) = LOWER($2) OR others.account = $6
) RETURNING account
