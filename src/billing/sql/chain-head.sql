SELECT n, hash FROM journal_batches WHERE chain = $1 ORDER BY n DESC LIMIT 1
