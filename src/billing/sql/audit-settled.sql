SELECT id, amount, lendable, prices, price, charged, shortfall, fee, fee_bps, usage, detail FROM locks
WHERE state = 'settled' AND id > $1 ORDER BY id LIMIT $2
