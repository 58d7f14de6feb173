-- What account $1 (with its prefix) has spent and locked in total, minus what budget $2 counts. It is derived from
-- balances, because the account may have millions of calls: see account-totals.sql.
SELECT CAST(paid_in - paid_out - available - locked - own_spent AS BIGINT) AS spent, CAST(locked - own_locked AS BIGINT) AS locked
FROM (SELECT
  COALESCE((SELECT SUM(amount) FROM transfers WHERE to_account = $1), 0) AS paid_in,
  COALESCE((SELECT SUM(amount) FROM transfers WHERE from_account = $1), 0) AS paid_out,
  COALESCE((SELECT available FROM accounts WHERE id = $1), 0) AS available,
  COALESCE((SELECT locked FROM accounts WHERE id = $1), 0) AS locked,
  COALESCE((SELECT spent FROM budgets WHERE id = $2), 0) AS own_spent,
  COALESCE((SELECT locked FROM budgets WHERE id = $2), 0) AS own_locked) AS figures
