-- Transfers are few for each account; its calls may be millions. So what calls have cost is derived: in - out - what is left.
SELECT
  CAST(COALESCE((SELECT SUM(amount) FROM transfers WHERE to_account = $1), 0) AS BIGINT) AS paid_in,
  CAST(COALESCE((SELECT SUM(amount) FROM transfers WHERE from_account = $1), 0) AS BIGINT) AS paid_out,
  CAST(COALESCE((SELECT available + locked FROM accounts WHERE id = $1), 0) AS BIGINT) AS remaining
