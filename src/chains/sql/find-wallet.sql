SELECT wallet, account, bound_at FROM wallets WHERE wallet = $1
