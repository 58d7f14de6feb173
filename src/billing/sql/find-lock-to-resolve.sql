SELECT id, account, amount, prices, budget, state, created_at, expires_at FROM locks WHERE id = $1
