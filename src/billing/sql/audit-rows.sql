SELECT batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at FROM journal
WHERE chain = $1 AND batch BETWEEN $2 AND $3 ORDER BY batch, position
