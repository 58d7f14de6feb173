-- What the books say that a treasury holds, and what of it its chain did not show at a height: what came or went later, and what is not final (all that is final up to the height is marked so).
SELECT
  CAST(COALESCE((SELECT available FROM accounts WHERE id = $2), 0) AS BIGINT) AS treasury,
  CAST(COALESCE((
    SELECT SUM(credited) FROM (
      SELECT credited FROM deposits WHERE network = $1 AND state = 'final' AND height > $3
      UNION ALL
      -- The first condition is that of the index.
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
