-- Makes account $1 with the label $2 at the time $3, unless another account has this label or is named so ($4), whatever
-- the case of letters. No row either if the account exists.
INSERT INTO consumers (account, label, created_at)
SELECT $1, $2, $3 WHERE NOT EXISTS (
  SELECT 1 FROM consumers AS others WHERE others.account <> $1 AND (LOWER(others.label) = LOWER($2) OR others.account = $4)
)
ON CONFLICT (account) DO NOTHING RETURNING *
