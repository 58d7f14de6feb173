-- What the budgets `$1:<period>` have counted as spent. Every collation puts them between $1 and $1 with a z after it: periods begin with letters before z.
SELECT CAST(COALESCE(SUM(spent), 0) AS BIGINT) AS spent FROM budgets
WHERE id >= $1 AND id < $1 || 'z' AND substr(id, 1, length($1) + 1) = $1 || ':'
