SELECT count(*) AS tasks FROM tasks
WHERE account = $1 AND primitive = $2 AND (CAST($3 AS TEXT) IS NULL OR run = $3) AND (CAST($4 AS TEXT) IS NULL OR service = $4)
  AND (CAST($5 AS TEXT) IS NULL OR context_id = $5) AND (CAST($6 AS TEXT) IS NULL OR state = $6) AND updated_at >= $7
