-- Transfers and journal must tell the same movements.
SELECT COALESCE(transfers.id, told.id) AS id
FROM transfers FULL JOIN (SELECT id, account, counterparty, amount, at FROM journal WHERE kind = 'transfer') AS told ON told.id = transfers.id
WHERE transfers.id IS NULL OR told.id IS NULL
  OR told.account <> transfers.from_account OR told.counterparty <> transfers.to_account
  OR told.amount <> transfers.amount OR told.at <> transfers.at
ORDER BY 1 LIMIT 20
