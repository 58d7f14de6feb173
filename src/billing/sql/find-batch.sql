SELECT hash FROM journal_batches WHERE chain = $1 AND n = $2
