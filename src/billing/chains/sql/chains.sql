-- name: insertChain
INSERT INTO chains (network, asset, treasury, opening, cursor, height, previous) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (network) DO NOTHING RETURNING network

-- name: findChain
SELECT network, asset, treasury, opening, cursor, height, held, booked, compared_at, halted, previous, previous_empty, opening_id FROM chains WHERE network = $1

-- name: listChains
SELECT network, asset, treasury, opening, cursor, height, held, booked, compared_at, halted, previous, previous_empty, opening_id FROM chains ORDER BY network

-- name: moveCursor
UPDATE chains SET cursor = $3, height = $4 WHERE network = $1 AND cursor = $2 RETURNING network

-- name: noteReserves
UPDATE chains SET held = $2, booked = $3, compared_at = $4 WHERE network = $1 RETURNING network

-- name: haltChain
UPDATE chains SET halted = $2 WHERE network = $1 RETURNING network

-- name: bookedAt
-- The balance of a treasury in the books, and the amounts that its chain did not show at a height: later transfers in
-- and out, and deposits that are not final (all deposits that are final up to the height are marked so).
SELECT
  CAST(COALESCE((SELECT available FROM accounts WHERE id = $2), 0) AS BIGINT) AS treasury,
  CAST(COALESCE((
    SELECT SUM(credited) FROM (
      SELECT credited FROM deposits WHERE network = $1 AND state = 'final' AND height > $3
      UNION ALL
      -- The first condition repeats the condition of the partial index.
      SELECT credited FROM deposits
      WHERE network = $1 AND state IN ('received', 'crediting', 'credited', 'reversing')
        AND ((state IN ('crediting', 'credited') AND EXISTS (SELECT 1 FROM transfers WHERE transfers.id = 'deposit:' || deposits.id))
          OR (state = 'reversing' AND NOT EXISTS (SELECT 1 FROM transfers WHERE transfers.id = 'deposit-lost:' || deposits.id)))
    ) AS later
  ), 0) AS BIGINT) AS came_later,
  CAST(COALESCE((
    SELECT SUM(amount - fee) FROM withdrawals
    WHERE network = $1 AND height > $3 AND EXISTS (SELECT 1 FROM transfers WHERE transfers.id = 'withdrawal-paid:' || withdrawals.id)
  ), 0) AS BIGINT) AS went_later

-- name: countMoney
-- Counts the open deposits and withdrawals of each chain, with the creation time of the oldest in epoch milliseconds.
-- The first conditions repeat the conditions of the partial indexes.
SELECT network, 'deposits' AS kind, COUNT(*) AS rows_open, MIN(created_at) AS oldest FROM deposits WHERE state IN ('received', 'crediting', 'credited', 'reversing') AND state <> 'credited' GROUP BY network
UNION ALL
SELECT network, 'unfinal' AS kind, COUNT(*) AS rows_open, MIN(created_at) AS oldest FROM deposits WHERE state IN ('received', 'crediting', 'credited', 'reversing') AND state = 'credited' GROUP BY network
UNION ALL
SELECT network, 'withdrawals' AS kind, COUNT(*) AS rows_open, MIN(created_at) AS oldest FROM withdrawals WHERE next_look_at IS NOT NULL AND state IN ('requested', 'debited', 'queued', 'signed', 'returning') GROUP BY network

-- name: beginHandover
-- The new cursor continues at the old cursor for the previous treasury, and at the beginning for the new one.
UPDATE chains SET treasury = $4, previous = $3, previous_empty = 0, opening = $5, opening_id = $6, cursor = $7
WHERE network = $1 AND cursor = $2 AND treasury = $3 AND previous IS NULL RETURNING network

-- name: endHandover
UPDATE chains SET previous = NULL, previous_empty = 0, cursor = $3 WHERE network = $1 AND cursor = $2 AND previous_empty = 1 RETURNING network

-- name: notePrevious
UPDATE chains SET previous_empty = 0 WHERE network = $1 RETURNING network

-- name: noteEmpty
-- The result counts only for its cursor, because later transfers may have come to the old treasury.
UPDATE chains SET previous_empty = $3 WHERE network = $1 AND cursor = $2 AND previous IS NOT NULL RETURNING network

-- name: keepSnapshot
INSERT INTO treasury_snapshots (network, treasury, cursor, height, balance) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (network, treasury, cursor) DO NOTHING

-- name: listSnapshots
SELECT cursor, height, balance FROM treasury_snapshots WHERE network = $1 AND treasury = $2 ORDER BY height DESC LIMIT $3

-- name: forgetSnapshots
DELETE FROM treasury_snapshots WHERE network = $1 AND treasury = $2 AND height < $3
