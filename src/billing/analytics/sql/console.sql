-- name: offersInSpan
SELECT primitive, service, provider, cause, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(failed) AS BIGINT) AS failed,
  CAST(SUM(charged) AS BIGINT) AS charged, CAST(SUM(fee) AS BIGINT) AS fee, CAST(SUM(cost) AS BIGINT) AS cost,
  CAST(SUM(cost_base) AS BIGINT) AS cost_base, CAST(SUM(uncosted) AS BIGINT) AS uncosted, CAST(SUM(tokens) AS BIGINT) AS tokens
FROM offer_sums WHERE span = $1 AND at BETWEEN $2 AND $3
GROUP BY primitive, service, provider, cause

-- name: timesInSpan
SELECT at, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(failed) AS BIGINT) AS failed, CAST(SUM(charged) AS BIGINT) AS charged,
  CAST(SUM(fee) AS BIGINT) AS fee, CAST(SUM(cost) AS BIGINT) AS cost, CAST(SUM(cost_base) AS BIGINT) AS cost_base,
  CAST(SUM(uncosted) AS BIGINT) AS uncosted, CAST(SUM(tokens) AS BIGINT) AS tokens
FROM offer_sums WHERE span = $1 AND at BETWEEN $2 AND $3
GROUP BY at

-- name: accountsInSpan
SELECT account, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(failed) AS BIGINT) AS failed, CAST(SUM(charged) AS BIGINT) AS charged,
  CAST(SUM(fee) AS BIGINT) AS fee
FROM account_sums WHERE span = $1 AND at BETWEEN $2 AND $3
GROUP BY account ORDER BY SUM(charged) DESC, SUM(requests) DESC, SUM(failed) DESC, account LIMIT $4

-- name: countAccountsInSpan
SELECT COUNT(DISTINCT account) AS accounts FROM account_sums WHERE span = $1 AND at BETWEEN $2 AND $3

-- name: priceTimes
-- $1: a JSON object of arrays, each with the id of one price.
SELECT id, created_at FROM prices WHERE id IN (SELECT value ->> 0 FROM json_each($1))

-- name: attemptsInDays
SELECT offer, CAST(SUM(successes) AS BIGINT) AS successes, CAST(SUM(failures) AS BIGINT) AS failures FROM offer_days
WHERE day BETWEEN $1 AND $2 GROUP BY offer

-- name: restingMoney
-- $1: a JSON object of arrays, each with the ledger account of one of the operator's own providers.
SELECT CASE
    WHEN id LIKE 'escrow:%' THEN 'escrow'
    WHEN id IN (SELECT value ->> 0 FROM json_each($1)) THEN 'own'
    WHEN id LIKE 'earnings:%' THEN 'earnings'
    WHEN id = 'treasury:operator' THEN 'operator'
    WHEN id LIKE 'treasury:%' THEN 'treasuries'
    ELSE id
  END AS kind, CAST(SUM(available) AS BIGINT) AS available, CAST(SUM(locked) AS BIGINT) AS locked
FROM (SELECT id, available, locked FROM accounts UNION ALL SELECT account, available, locked FROM account_stripes) AS held
GROUP BY 1
