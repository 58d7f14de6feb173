-- Labels of accounts other than $1 that may be the same as the folded label $2: those that are it without spaces, and
-- those with letters outside of ASCII, which the embedded database does not fold.
SELECT label FROM consumers WHERE account <> $1 AND label <> ''
  AND (OCTET_LENGTH(label) <> LENGTH(label) OR REPLACE(LOWER(label), ' ', '') = REPLACE($2, ' ', ''))
