-- Gives account $1 the label $2, unless another account has this label or is named so ($3), whatever the case of letters.
UPDATE consumers SET label = $2 WHERE account = $1 AND NOT EXISTS (
  SELECT 1 FROM consumers AS others WHERE others.account <> $1 AND (LOWER(others.label) = LOWER($2) OR others.account = $3)
) RETURNING *
