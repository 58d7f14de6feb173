INSERT INTO locks (id, account, amount, prices, budget, state, charged, fee, drawn, shortfall, created_at, expires_at, lock_detail,
  parent, depth, lendable, lent, kept)
VALUES ($1, $2, $3, $4, $5, 'held', 0, 0, 0, 0, $6, $7, $8, $9, $10, $11, $12, $13)
