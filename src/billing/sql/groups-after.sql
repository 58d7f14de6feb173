SELECT n, movements FROM journal_batches WHERE chain = $1 AND n > $2 ORDER BY n LIMIT $3
