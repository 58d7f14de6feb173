-- Counts the open deposits and withdrawals of each chain, with the creation time of the oldest in epoch milliseconds.
-- The first conditions repeat the conditions of the partial indexes.
SELECT network, 'deposits' AS kind, COUNT(*) AS rows_open, MIN(created_at) AS oldest FROM deposits WHERE state IN ('received', 'crediting', 'credited', 'reversing') AND state <> 'credited' GROUP BY network
UNION ALL
SELECT network, 'unfinal' AS kind, COUNT(*) AS rows_open, MIN(created_at) AS oldest FROM deposits WHERE state IN ('received', 'crediting', 'credited', 'reversing') AND state = 'credited' GROUP BY network
UNION ALL
SELECT network, 'withdrawals' AS kind, COUNT(*) AS rows_open, MIN(created_at) AS oldest FROM withdrawals WHERE next_look_at IS NOT NULL AND state IN ('requested', 'debited', 'queued', 'signed', 'returning') GROUP BY network
