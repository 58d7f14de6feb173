INSERT INTO locks (id, account, amount, prices, budget, created_at, expires_at, lock_detail,
  state, price, provider, charged, fee, fee_bps, drawn, shortfall, resolved_at, usage, detail)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
