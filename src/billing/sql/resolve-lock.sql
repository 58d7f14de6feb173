UPDATE locks SET state = $2, price = $3, provider = $4, charged = $5, fee = $6, fee_bps = $7, drawn = $8, shortfall = $9,
  resolved_at = $10, usage = $11, detail = $12
WHERE id = $1 AND state = 'held'
