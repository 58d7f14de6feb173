-- What waits on each chain, for how long, in epoch milliseconds. The first conditions are those of the indexes.
SELECT network, 'deposits' AS kind, COUNT(*) AS rows_open, MIN(created_at) AS oldest FROM deposits WHERE state IN ('received', 'crediting', 'credited', 'reversing') AND state <> 'credited' GROUP BY network
UNION ALL
SELECT network, 'unfinal' AS kind, COUNT(*) AS rows_open, MIN(created_at) AS oldest FROM deposits WHERE state IN ('received', 'crediting', 'credited', 'reversing') AND state = 'credited' GROUP BY network
UNION ALL
SELECT network, 'withdrawals' AS kind, COUNT(*) AS rows_open, MIN(created_at) AS oldest FROM withdrawals WHERE next_look_at IS NOT NULL AND state IN ('requested', 'debited', 'queued', 'signed', 'returning') GROUP BY network
