SELECT id, amount, lendable, prices, price, charged, shortfall, usage, detail FROM locks
WHERE state = 'settled' AND id > $1 ORDER BY id LIMIT $2
