-- What the budgets `$1:<period>` have counted as spent. No period begins with z, so in every collation their ids stand
-- between $1 and $1 with a z after it, and are found by the primary key.
SELECT CAST(COALESCE(SUM(spent), 0) AS BIGINT) AS spent FROM budgets
WHERE id >= $1 AND id < $1 || 'z' AND substr(id, 1, length($1) + 1) = $1 || ':'
