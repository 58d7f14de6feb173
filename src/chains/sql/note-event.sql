-- The event of a chain is stored before it is credited. Money that the chain can still undo is credited only up to a
-- limit.
UPDATE deposits SET state = 'crediting', transaction_id = $2, event = $3, height = $4, credited = $5, updated_at = $6, next_look_at = $7
WHERE id = $1 AND state IN ('received', 'failed') AND (
  $8 = 1 OR $5 + (SELECT COALESCE(SUM(others.credited), 0) FROM deposits AS others WHERE others.network = deposits.network AND others.state IN ('crediting', 'credited')) <= $9
) AND (
  $8 = 1 OR account IS NULL OR account LIKE 'tollgate:%' OR $5 + (
    SELECT COALESCE(SUM(others.credited), 0) FROM deposits AS others
    WHERE others.state IN ('crediting', 'credited') AND others.account NOT LIKE 'tollgate:%'
  ) <= $10
)
RETURNING id, network, account, payer, amount, payment, request, state, transaction_id, event, height, credited, reason, created_at, updated_at, looks
