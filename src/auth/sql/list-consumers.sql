-- An account that nobody has named exists since its first key or deposit. $3: only accounts in this state, or '' for all.
-- $4: only accounts with this label, or '' for all.
SELECT * FROM (
  SELECT account, label, created_at, state, state_reason, state_at FROM consumers
  UNION ALL
  SELECT account, '' AS label, MIN(created_at) AS created_at, 'open' AS state, '' AS state_reason, NULL AS state_at FROM (
    SELECT account, created_at FROM api_keys
    UNION ALL
    SELECT account, created_at FROM deposits WHERE account IS NOT NULL
  ) AS began
  WHERE NOT EXISTS (SELECT 1 FROM consumers WHERE consumers.account = began.account)
  GROUP BY account
) AS known
WHERE ($3 = '' OR state = $3) AND ($4 = '' OR LOWER(label) = LOWER($4))
ORDER BY created_at, account LIMIT $1 OFFSET $2
