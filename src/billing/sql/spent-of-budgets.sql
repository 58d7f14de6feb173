-- The sum that the budgets `$1:<period>` count as spent. No period begins with z. So in every collation their ids are
-- between $1 and `$1z`, and the primary key finds them.
SELECT CAST(COALESCE(SUM(spent), 0) AS BIGINT) AS spent FROM budgets
WHERE id >= $1 AND id < $1 || 'z' AND substr(id, 1, length($1) + 1) = $1 || ':'
