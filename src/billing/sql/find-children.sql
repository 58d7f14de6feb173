SELECT id, account, amount, parent, depth, lendable, lent, kept, prices, budget, state, price, provider, charged, fee, fee_bps, drawn, shortfall,
  created_at, expires_at, resolved_at, lock_detail, usage, detail
FROM locks WHERE parent = $1 ORDER BY created_at, id LIMIT $2
