SELECT journal.chain, journal.batch, journal.position FROM journal
LEFT JOIN journal_batches ON journal_batches.chain = journal.chain AND journal_batches.n = journal.batch
WHERE journal_batches.n IS NULL OR journal_batches.movements IS NOT NULL
ORDER BY journal.chain, journal.batch, journal.position LIMIT 20
