SELECT hash FROM journal_batches WHERE chain = $1 AND hash = ANY ($2::text[])
