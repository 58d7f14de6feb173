-- $1: accounts of the batch. $2: its locks, whose escrow accounts are locked too. Rows are locked in id order, so that
-- gateways cannot deadlock.
SELECT id, available, locked FROM accounts
WHERE id = ANY (ARRAY(SELECT unnest($1::text[]) UNION SELECT 'escrow:' || account FROM locks WHERE id = ANY ($2::text[])))
ORDER BY id FOR UPDATE
