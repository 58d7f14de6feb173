-- The transfers of account $1 (with its prefix) by kind. The kind is the part of the id before the first colon; of what
-- was left at a close the memo says what became of it.
SELECT kind, CAST(SUM(amount) AS BIGINT) AS amount FROM (
  SELECT CASE
    WHEN id LIKE 'credit:%' THEN 'credited'
    WHEN id LIKE 'deposit:%' OR id LIKE 'deposit-given:%' THEN 'deposited'
    WHEN id LIKE 'withdrawal-back:%' THEN 'returned'
    ELSE 'other_in' END AS kind, amount FROM transfers WHERE to_account = $1
  UNION ALL
  SELECT CASE
    WHEN id LIKE 'debit:%' THEN 'debited'
    WHEN id LIKE 'close:%' AND memo LIKE 'Written off: %' THEN 'written_off'
    WHEN id LIKE 'close:%' THEN 'paid_out'
    WHEN id LIKE 'withdrawal:%' THEN 'withdrawn'
    ELSE 'other_out' END AS kind, amount FROM transfers WHERE from_account = $1
) AS movements
GROUP BY kind
