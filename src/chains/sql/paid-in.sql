-- The sum of an account's deposits that were not undone.
SELECT CAST(COALESCE(SUM(credited), 0) AS BIGINT) AS amount FROM deposits WHERE account = $1 AND state IN ('crediting', 'credited', 'final')
