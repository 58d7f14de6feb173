-- name: findListedPrices
SELECT document, past_prices, revision FROM listed_prices WHERE provider = $1

-- name: putListedPrices
-- Returns no row if another gateway has written in the meantime.
INSERT INTO listed_prices (provider, document, past_prices, revision) VALUES ($1, $2, $3, $4 + 1)
ON CONFLICT (provider) DO UPDATE SET
  document = excluded.document,
  past_prices = excluded.past_prices,
  revision = excluded.revision
WHERE listed_prices.revision = $4
RETURNING revision
