-- Only one process can have an address at a time, and the embedded database ($3 = 1) has only one gateway.
DELETE FROM nodes WHERE id <> $1 AND (url = $2 OR CAST($3 AS BIGINT) = 1)
