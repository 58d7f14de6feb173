-- An account has few transfers, but maybe millions of calls. So the cost of its calls is derived: paid in - paid out -
-- remaining.
SELECT
  CAST(COALESCE((SELECT SUM(amount) FROM transfers WHERE to_account = $1), 0) AS BIGINT) AS paid_in,
  CAST(COALESCE((SELECT SUM(amount) FROM transfers WHERE from_account = $1), 0) AS BIGINT) AS paid_out,
  CAST(COALESCE((SELECT available + locked FROM accounts WHERE id = $1), 0) AS BIGINT) AS remaining
