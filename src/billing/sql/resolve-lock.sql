UPDATE locks SET state = $2, price = $3, provider = $4, charged = $5, fee = $6, drawn = $7, shortfall = $8,
  resolved_at = $9, usage = $10, detail = $11
WHERE id = $1 AND state = 'held'
