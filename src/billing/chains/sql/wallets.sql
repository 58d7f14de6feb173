-- name: bindWallet
INSERT INTO wallets (wallet, account, bound_at) VALUES ($1, $2, $3) ON CONFLICT (wallet) DO NOTHING RETURNING wallet

-- name: findWallet
SELECT wallet, account, bound_at FROM wallets WHERE wallet = $1

-- name: listWallets
SELECT wallet, account, bound_at FROM wallets WHERE account = $1 ORDER BY bound_at LIMIT 100

-- name: unbindWallet
DELETE FROM wallets WHERE wallet = $1 AND account = $2 RETURNING wallet
