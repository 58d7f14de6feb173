-- What a key has spent and locked in total, minus what budget $2 counts. Each call of a key counts in one of the
-- budgets `$1:<period>`. For the range of ids see spent-of-budgets.sql.
SELECT CAST(COALESCE(SUM(spent), 0) AS BIGINT) AS spent, CAST(COALESCE(SUM(locked), 0) AS BIGINT) AS locked FROM budgets
WHERE id >= $1 AND id < $1 || 'z' AND substr(id, 1, length($1) + 1) = $1 || ':' AND id <> $2
