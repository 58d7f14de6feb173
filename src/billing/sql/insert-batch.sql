INSERT INTO journal_batches (chain, n, at, count, prev, hash) VALUES ($1, $2, $3, $4, $5, $6)
