SELECT count(*) AS tasks FROM (SELECT 1 AS one FROM tasks WHERE account = $1 AND open = 1 AND ended_at IS NULL LIMIT $2) AS found
