-- An address is one process's at a time; and the embedded database ($3 = 1) has one gateway at a time.
DELETE FROM nodes WHERE id <> $1 AND (url = $2 OR CAST($3 AS BIGINT) = 1)
