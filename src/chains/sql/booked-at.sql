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
