-- The transfers of account $1 (with its prefix), the newest first, before the time $2 and the id $3.
SELECT id, from_account, to_account, amount, memo, at FROM (
  SELECT * FROM (
    SELECT * FROM transfers WHERE from_account = $1 AND (at, id) < ($2, $3) ORDER BY at DESC, id DESC LIMIT $4) AS taken
  UNION ALL
  SELECT * FROM (
    SELECT * FROM transfers WHERE to_account = $1 AND (at, id) < ($2, $3) ORDER BY at DESC, id DESC LIMIT $4) AS given
) AS movements
ORDER BY at DESC, id DESC LIMIT $4
