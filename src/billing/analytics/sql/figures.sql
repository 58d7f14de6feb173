-- name: usersByDay
-- newcomers: users who were not active earlier in the range. $3: hash of an account that does not count.
SELECT day, CAST(SUM(users) AS BIGINT) AS users, CAST(SUM(CASE WHEN previous < $1 THEN users ELSE 0 END) AS BIGINT) AS newcomers FROM (
  SELECT day, previous, users FROM user_counts WHERE day BETWEEN $1 AND $2
  UNION ALL
  SELECT day, counted, -1 FROM user_days WHERE account_hash = $3 AND day BETWEEN $1 AND $2 AND counted >= -1
) AS told GROUP BY day HAVING SUM(users) > 0

-- name: hiddenServices
-- Days of services with fewer users than $5. $3: as in market-by-day. $4: an account that does not count. $6, $7: only
-- this primitive and service; empty for all.
SELECT DISTINCT day, primitive, service FROM service_days
WHERE day BETWEEN $1 AND $2 AND development <= $3 AND ($6 = '' OR (service = $7 AND primitive = $6)) AND (day, primitive, service) NOT IN (
  SELECT day, primitive, service FROM usage_days
  WHERE day BETWEEN $1 AND $2 AND requests > 0 AND account <> $4 AND ($6 = '' OR (service = $7 AND primitive = $6))
  GROUP BY day, primitive, service HAVING COUNT(DISTINCT account) >= $5
)

-- name: marketByDay
-- $3: 1 to include calls of the development account.
SELECT day, primitive, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(failed) AS BIGINT) AS failed, CAST(SUM(charged) AS BIGINT) AS charged,
  CAST(SUM(prompt) AS BIGINT) AS prompt, CAST(SUM(completion) AS BIGINT) AS completion, CAST(SUM(reasoning) AS BIGINT) AS reasoning,
  CAST(SUM(cached) AS BIGINT) AS cached
FROM public_days WHERE day BETWEEN $1 AND $2 AND development <= $3
GROUP BY day, primitive

-- name: usersOfHiddenDays
-- Counts users whose first active day of the range is hidden but who were also active on a later visible day. $4: the
-- hidden days, a JSON object of arrays, each with one day.
SELECT COUNT(*) AS users FROM user_days AS hidden
WHERE hidden.day IN (SELECT CAST(value ->> 0 AS BIGINT) FROM json_each($4)) AND hidden.day BETWEEN $1 AND $2 AND hidden.previous < $1
  AND hidden.account_hash <> $3
  AND EXISTS (
    SELECT 1 FROM user_days AS later
    WHERE later.account_hash = hidden.account_hash AND later.day > hidden.day AND later.day <= $2
      AND later.day NOT IN (SELECT CAST(value ->> 0 AS BIGINT) FROM json_each($4))
  )

-- name: providersByDay
SELECT DISTINCT day, provider FROM service_days
WHERE day BETWEEN $1 AND $2 AND development <= $3 AND requests > 0

-- name: listingsOfDays
-- $4: as in users-of-hidden-days. $5: the rows of hidden-services, a JSON object of arrays.
SELECT primitive, service, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(charged) AS BIGINT) AS charged, CAST(SUM(prompt + completion) AS BIGINT) AS tokens
FROM service_days
WHERE day BETWEEN $1 AND $2 AND development <= $3 AND requests > 0 AND day NOT IN (SELECT CAST(value ->> 0 AS BIGINT) FROM json_each($4))
  AND (day, primitive, service) NOT IN (SELECT CAST(value ->> 0 AS BIGINT), value ->> 1, value ->> 2 FROM json_each($5))
GROUP BY primitive, service

-- name: countKnownUsers
SELECT COALESCE(CAST(SUM(users) AS BIGINT), 0) AS users, COALESCE(CAST(SUM(users * wallet) AS BIGINT), 0) AS wallets FROM (
  SELECT wallet, users FROM known_counts WHERE since <= $1
  UNION ALL
  SELECT wallet, -1 FROM known_users WHERE account_hash = $2 AND counted BETWEEN 0 AND $1
) AS told

-- name: allAttempts
-- $4: 1 to group the rows by day.
SELECT offer, CASE WHEN $4 = 1 THEN day ELSE 0 END AS day, CAST(SUM(successes) AS BIGINT) AS successes, CAST(SUM(failures) AS BIGINT) AS failures FROM offer_days
WHERE day BETWEEN $1 AND $2 AND day NOT IN (SELECT CAST(value ->> 0 AS BIGINT) FROM json_each($3))
GROUP BY 1, 2

-- name: listingByDay
SELECT day, provider, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(failed) AS BIGINT) AS failed, CAST(SUM(charged) AS BIGINT) AS charged,
  CAST(SUM(prompt) AS BIGINT) AS prompt, CAST(SUM(completion) AS BIGINT) AS completion, CAST(SUM(reasoning) AS BIGINT) AS reasoning,
  CAST(SUM(cached) AS BIGINT) AS cached, CAST(SUM(images) AS BIGINT) AS images, CAST(SUM(seconds) AS BIGINT) AS seconds,
  CAST(SUM(timed_tokens) AS BIGINT) AS timed_tokens, CAST(SUM(timed_ms) AS BIGINT) AS timed_ms
FROM service_days WHERE service = $1 AND primitive = $2 AND day BETWEEN $3 AND $4 AND development <= $5
GROUP BY day, provider

-- name: isCalled
SELECT 1 AS called FROM service_days WHERE service = $1 AND primitive = $2 AND day BETWEEN $3 AND $4 AND development <= $5 LIMIT 1

-- name: timesOfListing
-- $3: a JSON object of arrays, each with one day. A list of days lets the index be used. $4: as in listing-by-day.
SELECT provider, measure, bucket, CAST(SUM(calls) AS BIGINT) AS calls FROM service_times
WHERE day IN (SELECT CAST(value ->> 0 AS BIGINT) FROM json_each($3)) AND service = $1 AND primitive = $2 AND development <= $4
GROUP BY provider, measure, bucket

-- name: attemptsOfOffers
-- $1: a JSON object of arrays, each with the id of one offer.
SELECT offer, day, successes, failures FROM offer_days
WHERE offer IN (SELECT value ->> 0 FROM json_each($1)) AND day BETWEEN $2 AND $3

-- name: pricesOfListing
-- The newest 1,000 prices of each provider, at most 20,000 in all, the oldest first.
SELECT id, provider, rates, created_at FROM (
  SELECT id, provider, rates, created_at, ROW_NUMBER() OVER (PARTITION BY provider ORDER BY created_at DESC, id) AS place FROM prices
  WHERE service = $1 ORDER BY place, provider LIMIT 20000
) AS newest
WHERE place <= 1000 ORDER BY created_at, id

-- name: recentTimes
SELECT primitive, service, provider, bucket, CAST(SUM(calls) AS BIGINT) AS calls FROM service_times
WHERE measure = 'first_byte' AND day BETWEEN $1 AND $2
GROUP BY primitive, service, provider, bucket

-- name: recentSpeeds
SELECT primitive, service, provider, CAST(SUM(timed_tokens) AS BIGINT) AS tokens, CAST(SUM(timed_ms) AS BIGINT) AS ms FROM service_days
WHERE timed_ms > 0 AND day BETWEEN $1 AND $2
GROUP BY primitive, service, provider

-- name: accountsOfDays
SELECT DISTINCT account FROM usage_days WHERE day BETWEEN $1 AND $2 ORDER BY account

-- name: tagNames
-- An index has the days in order, so the names of each day come without a sort: a third of the time over all accounts.
SELECT DISTINCT tag FROM (SELECT day, tag FROM tag_days WHERE account = $1 AND day BETWEEN $2 AND $3 GROUP BY day, tag) AS days ORDER BY tag

-- name: tagsOfDays
-- The same as usageOfDays of calls that have the tag $9, by its values.
SELECT day, account, service, key, provider, primitive, value,
  CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(failed) AS BIGINT) AS failed, CAST(SUM(charged) AS BIGINT) AS charged, CAST(SUM(prompt) AS BIGINT) AS prompt, CAST(SUM(completion) AS BIGINT) AS completion, CAST(SUM(reasoning) AS BIGINT) AS reasoning, CAST(SUM(cached) AS BIGINT) AS cached, CAST(SUM(images) AS BIGINT) AS images, CAST(SUM(seconds) AS BIGINT) AS seconds
FROM tag_days
WHERE account = $1 AND day BETWEEN $2 AND $3 AND ($4 = '' OR service = $4) AND ($5 = '' OR key = $5) AND ($6 = '' OR provider = $6)
  AND ($7 = '' OR primitive = $7) AND tag = $9
GROUP BY day, account, service, key, provider, primitive, value
LIMIT $8

-- name: usageOfDays
-- $4 to $7: only this service, key, provider, primitive; empty for all. `statementOf` in own-usage.ts leaves out the
-- groups that a question does not have, and the account in a question about all.
SELECT day, account, service, key, provider, primitive,
  CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(failed) AS BIGINT) AS failed, CAST(SUM(charged) AS BIGINT) AS charged, CAST(SUM(prompt) AS BIGINT) AS prompt, CAST(SUM(completion) AS BIGINT) AS completion, CAST(SUM(reasoning) AS BIGINT) AS reasoning, CAST(SUM(cached) AS BIGINT) AS cached, CAST(SUM(images) AS BIGINT) AS images, CAST(SUM(seconds) AS BIGINT) AS seconds
FROM usage_days
WHERE account = $1 AND day BETWEEN $2 AND $3 AND ($4 = '' OR service = $4) AND ($5 = '' OR key = $5) AND ($6 = '' OR provider = $6)
  AND ($7 = '' OR primitive = $7)
GROUP BY day, account, service, key, provider, primitive
LIMIT $8
