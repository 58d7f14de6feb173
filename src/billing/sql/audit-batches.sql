SELECT chain, n, at, count, prev, hash, movements FROM journal_batches
WHERE (chain, n) > ($1, $2) ORDER BY chain, n LIMIT $3
