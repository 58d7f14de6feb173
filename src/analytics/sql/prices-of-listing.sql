-- The newest 1,000 prices of each provider, at most 20,000 in all, the oldest first.
SELECT id, provider, rates, created_at FROM (
  SELECT id, provider, rates, created_at, ROW_NUMBER() OVER (PARTITION BY provider ORDER BY created_at DESC, id) AS place FROM prices
  WHERE service = $1 ORDER BY place, provider LIMIT 20000
) AS newest
WHERE place <= 1000 ORDER BY created_at, id
