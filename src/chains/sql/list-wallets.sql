SELECT wallet, account, bound_at FROM wallets WHERE account = $1 ORDER BY bound_at LIMIT 100
