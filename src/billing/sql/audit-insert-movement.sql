INSERT INTO group_movements (chain, batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
