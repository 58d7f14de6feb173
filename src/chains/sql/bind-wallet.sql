INSERT INTO wallets (wallet, account, bound_at) VALUES ($1, $2, $3) ON CONFLICT (wallet) DO NOTHING RETURNING wallet
