SELECT COUNT(*) AS users, COALESCE(CAST(SUM(wallet) AS BIGINT), 0) AS wallets FROM known_users WHERE since <= $1 AND account_hash <> $2
