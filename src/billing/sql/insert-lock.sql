INSERT INTO locks (id, account, amount, prices, budget, state, price, provider, charged, fee, drawn, shortfall,
  created_at, expires_at, resolved_at, lock_detail, usage, detail)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
