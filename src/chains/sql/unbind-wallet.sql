DELETE FROM wallets WHERE wallet = $1 AND account = $2 RETURNING wallet
