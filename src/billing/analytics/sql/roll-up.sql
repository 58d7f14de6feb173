-- name: findState
SELECT version, as_of, rolled_at, accounts_at, usage_since FROM analytics_state

-- name: findCursors
SELECT chain, n, position FROM analytics_cursors

-- name: findResolved
-- A call of the time of an archive was counted before it was archived.
SELECT account, state, provider, charged, fee, resolved_at, lock_detail, usage, detail FROM locks
WHERE id = $1 AND resolved_at >= (SELECT COALESCE(MAX(ends_at), 0) FROM archives)

-- name: findManyResolved
-- $1: a JSON object of arrays, each with one id.
SELECT account, state, provider, charged, fee, resolved_at, lock_detail, usage, detail FROM locks
WHERE id IN (SELECT value ->> 0 FROM json_each($1)) AND resolved_at >= (SELECT COALESCE(MAX(ends_at), 0) FROM archives)

-- name: moveVersion
-- If the version is not $1, it becomes NULL. The table refuses NULL, so the whole transaction is rolled back.
UPDATE analytics_state SET version = CASE WHEN version = $1 THEN version + 1 END, as_of = $2, rolled_at = $3 WHERE id = 1

-- name: putCursors
INSERT INTO analytics_cursors (chain, n, position)
SELECT r.value ->> 0, CAST(r.value ->> 1 AS BIGINT), CAST(r.value ->> 2 AS BIGINT)
FROM json_each($1) AS r WHERE TRUE
ON CONFLICT (chain) DO UPDATE SET n = excluded.n, position = excluded.position

-- name: stepVersion
UPDATE analytics_state SET version = version + 1 WHERE id = 1

-- name: forgetCursors
DELETE FROM analytics_cursors

-- name: addAccountSums
INSERT INTO account_sums (span, at, account, requests, failed, charged, fee)
SELECT CAST(r.value ->> 0 AS BIGINT), CAST(r.value ->> 1 AS BIGINT), r.value ->> 2, CAST(r.value ->> 3 AS BIGINT), CAST(r.value ->> 4 AS BIGINT), CAST(r.value ->> 5 AS BIGINT), CAST(r.value ->> 6 AS BIGINT)
FROM json_each($1) AS r WHERE TRUE
ON CONFLICT (span, at, account) DO UPDATE SET requests = account_sums.requests + excluded.requests, failed = account_sums.failed + excluded.failed, charged = account_sums.charged + excluded.charged, fee = account_sums.fee + excluded.fee

-- name: addActiveUsers
INSERT INTO user_days (day, account_hash, previous)
SELECT added.day, added.account_hash, COALESCE(
  (SELECT MAX(earlier.day) FROM user_days AS earlier WHERE earlier.account_hash = added.account_hash AND earlier.day < added.day), -1
)
FROM (SELECT CAST(r.value ->> 0 AS BIGINT) AS day, CAST(r.value ->> 1 AS BIGINT) AS account_hash FROM json_each($1) AS r) AS added WHERE TRUE
ON CONFLICT (day, account_hash) DO NOTHING

-- name: addListingDays
INSERT INTO service_days (day, development, primitive, service, provider, requests, failed, charged, prompt, completion, reasoning, cached, images, seconds, timed_tokens, timed_ms)
SELECT CAST(r.value ->> 0 AS BIGINT), CAST(r.value ->> 1 AS BIGINT), r.value ->> 2, r.value ->> 3, r.value ->> 4, CAST(r.value ->> 5 AS BIGINT), CAST(r.value ->> 6 AS BIGINT), CAST(r.value ->> 7 AS BIGINT), CAST(r.value ->> 8 AS BIGINT), CAST(r.value ->> 9 AS BIGINT), CAST(r.value ->> 10 AS BIGINT), CAST(r.value ->> 11 AS BIGINT), CAST(r.value ->> 12 AS BIGINT), CAST(r.value ->> 13 AS BIGINT), CAST(r.value ->> 14 AS BIGINT), CAST(r.value ->> 15 AS BIGINT)
FROM json_each($1) AS r WHERE TRUE
ON CONFLICT (day, development, primitive, service, provider) DO UPDATE SET requests = service_days.requests + excluded.requests, failed = service_days.failed + excluded.failed, charged = service_days.charged + excluded.charged, prompt = service_days.prompt + excluded.prompt, completion = service_days.completion + excluded.completion, reasoning = service_days.reasoning + excluded.reasoning, cached = service_days.cached + excluded.cached, images = service_days.images + excluded.images, seconds = service_days.seconds + excluded.seconds, timed_tokens = service_days.timed_tokens + excluded.timed_tokens, timed_ms = service_days.timed_ms + excluded.timed_ms

-- name: addMarketDays
INSERT INTO public_days (day, development, primitive, requests, failed, charged, prompt, completion, reasoning, cached)
SELECT CAST(r.value ->> 0 AS BIGINT), CAST(r.value ->> 1 AS BIGINT), r.value ->> 2, CAST(r.value ->> 3 AS BIGINT), CAST(r.value ->> 4 AS BIGINT), CAST(r.value ->> 5 AS BIGINT), CAST(r.value ->> 6 AS BIGINT), CAST(r.value ->> 7 AS BIGINT), CAST(r.value ->> 8 AS BIGINT), CAST(r.value ->> 9 AS BIGINT)
FROM json_each($1) AS r WHERE TRUE
ON CONFLICT (day, development, primitive) DO UPDATE SET requests = public_days.requests + excluded.requests, failed = public_days.failed + excluded.failed, charged = public_days.charged + excluded.charged, prompt = public_days.prompt + excluded.prompt, completion = public_days.completion + excluded.completion, reasoning = public_days.reasoning + excluded.reasoning, cached = public_days.cached + excluded.cached

-- name: addOfferSums
INSERT INTO offer_sums (span, at, primitive, service, provider, cause, requests, failed, charged, fee, cost, cost_base, tokens, uncosted)
SELECT CAST(r.value ->> 0 AS BIGINT), CAST(r.value ->> 1 AS BIGINT), r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5, CAST(r.value ->> 6 AS BIGINT), CAST(r.value ->> 7 AS BIGINT), CAST(r.value ->> 8 AS BIGINT), CAST(r.value ->> 9 AS BIGINT), CAST(r.value ->> 10 AS BIGINT), CAST(r.value ->> 11 AS BIGINT), CAST(r.value ->> 12 AS BIGINT), CAST(r.value ->> 13 AS BIGINT)
FROM json_each($1) AS r WHERE TRUE
ON CONFLICT (span, at, primitive, service, provider, cause) DO UPDATE SET requests = offer_sums.requests + excluded.requests, failed = offer_sums.failed + excluded.failed, charged = offer_sums.charged + excluded.charged, fee = offer_sums.fee + excluded.fee, cost = offer_sums.cost + excluded.cost, cost_base = offer_sums.cost_base + excluded.cost_base, tokens = offer_sums.tokens + excluded.tokens, uncosted = offer_sums.uncosted + excluded.uncosted

-- name: addTagDays
-- A caller chooses the values, so the rows of an account and day have a bound: 100,000, and 1,000 of calls that cost
-- nothing. Calls beyond it count as calls without the tag.
WITH
  added AS (SELECT r.value ->> 0 AS account, r.value ->> 1 AS tag, CAST(r.value ->> 2 AS BIGINT) AS day, r.value ->> 3 AS value, r.value ->> 4 AS key, r.value ->> 5 AS primitive, r.value ->> 6 AS service, r.value ->> 7 AS provider, CAST(r.value ->> 8 AS BIGINT) AS requests, CAST(r.value ->> 9 AS BIGINT) AS failed, CAST(r.value ->> 10 AS BIGINT) AS charged, CAST(r.value ->> 11 AS BIGINT) AS fee, CAST(r.value ->> 12 AS BIGINT) AS prompt, CAST(r.value ->> 13 AS BIGINT) AS completion, CAST(r.value ->> 14 AS BIGINT) AS reasoning, CAST(r.value ->> 15 AS BIGINT) AS cached, CAST(r.value ->> 16 AS BIGINT) AS images, CAST(r.value ->> 17 AS BIGINT) AS seconds FROM json_each($1) AS r),
  compared AS (
    SELECT added.*, EXISTS (
      SELECT 1 FROM tag_days AS t WHERE t.account = added.account AND t.tag = added.tag AND t.day = added.day AND t.value = added.value
        AND t.key = added.key AND t.primitive = added.primitive AND t.service = added.service AND t.provider = added.provider
    ) AS is_known FROM added
  ),
  numbered AS (SELECT compared.*, ROW_NUMBER() OVER (PARTITION BY account, day, is_known ORDER BY charged DESC) AS n FROM compared),
  rooms AS (
    SELECT account, day, (SELECT COUNT(*) FROM (SELECT 1 FROM tag_days AS t WHERE t.account = fresh.account AND t.day = fresh.day LIMIT 100000) AS first_ones) AS taken
    FROM (SELECT DISTINCT account, day FROM compared WHERE NOT is_known) AS fresh
  )
INSERT INTO tag_days (account, tag, day, value, key, primitive, service, provider, requests, failed, charged, fee, prompt, completion, reasoning, cached, images, seconds)
SELECT numbered.account, numbered.tag, numbered.day, numbered.value, numbered.key, numbered.primitive, numbered.service, numbered.provider, numbered.requests, numbered.failed, numbered.charged, numbered.fee, numbered.prompt, numbered.completion, numbered.reasoning, numbered.cached, numbered.images, numbered.seconds
FROM numbered LEFT JOIN rooms ON rooms.account = numbered.account AND rooms.day = numbered.day
WHERE is_known OR tag = '@member' OR taken + n <= CASE WHEN charged > 0 THEN 100000 ELSE 1000 END
ON CONFLICT (account, tag, day, value, key, primitive, service, provider) DO UPDATE SET requests = tag_days.requests + excluded.requests, failed = tag_days.failed + excluded.failed, charged = tag_days.charged + excluded.charged, fee = tag_days.fee + excluded.fee, prompt = tag_days.prompt + excluded.prompt, completion = tag_days.completion + excluded.completion, reasoning = tag_days.reasoning + excluded.reasoning, cached = tag_days.cached + excluded.cached, images = tag_days.images + excluded.images, seconds = tag_days.seconds + excluded.seconds

-- name: addTimes
INSERT INTO service_times (service, primitive, day, development, provider, measure, bucket, calls)
SELECT r.value ->> 0, r.value ->> 1, CAST(r.value ->> 2 AS BIGINT), CAST(r.value ->> 3 AS BIGINT), r.value ->> 4, r.value ->> 5, CAST(r.value ->> 6 AS BIGINT), CAST(r.value ->> 7 AS BIGINT)
FROM json_each($1) AS r WHERE TRUE
ON CONFLICT (service, primitive, day, development, provider, measure, bucket) DO UPDATE SET calls = service_times.calls + excluded.calls

-- name: addUsageDays
-- $1: a JSON object of rows. Each row is an array with the columns in this order. It is an object because both engines
-- have json_each for objects.
INSERT INTO usage_days (account, day, key, primitive, service, provider, requests, failed, charged, fee, prompt, completion, reasoning, cached, images, seconds)
SELECT r.value ->> 0, CAST(r.value ->> 1 AS BIGINT), r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5, CAST(r.value ->> 6 AS BIGINT), CAST(r.value ->> 7 AS BIGINT), CAST(r.value ->> 8 AS BIGINT), CAST(r.value ->> 9 AS BIGINT), CAST(r.value ->> 10 AS BIGINT), CAST(r.value ->> 11 AS BIGINT), CAST(r.value ->> 12 AS BIGINT), CAST(r.value ->> 13 AS BIGINT), CAST(r.value ->> 14 AS BIGINT), CAST(r.value ->> 15 AS BIGINT)
FROM json_each($1) AS r WHERE TRUE
ON CONFLICT (account, day, key, primitive, service, provider) DO UPDATE SET requests = usage_days.requests + excluded.requests, failed = usage_days.failed + excluded.failed, charged = usage_days.charged + excluded.charged, fee = usage_days.fee + excluded.fee, prompt = usage_days.prompt + excluded.prompt, completion = usage_days.completion + excluded.completion, reasoning = usage_days.reasoning + excluded.reasoning, cached = usage_days.cached + excluded.cached, images = usage_days.images + excluded.images, seconds = usage_days.seconds + excluded.seconds

-- name: clearAccountSums
DELETE FROM account_sums WHERE at >= (SELECT COALESCE(MAX(ends_at), 0) FROM archives) / CASE span WHEN 1 THEN 86400000 ELSE 3600000 END

-- name: clearActiveUsers
DELETE FROM user_days WHERE day >= (SELECT COALESCE(MAX(ends_at), 0) / 86400000 FROM archives)

-- name: clearKnownCounts
DELETE FROM known_counts

-- name: clearListingDays
DELETE FROM service_days WHERE day >= (SELECT COALESCE(MAX(ends_at), 0) / 86400000 FROM archives)

-- name: clearMarketDays
DELETE FROM public_days WHERE day >= (SELECT COALESCE(MAX(ends_at), 0) / 86400000 FROM archives)

-- name: clearOfferSums
DELETE FROM offer_sums WHERE at >= (SELECT COALESCE(MAX(ends_at), 0) FROM archives) / CASE span WHEN 1 THEN 86400000 ELSE 3600000 END

-- name: clearTagDays
DELETE FROM tag_days WHERE day >= (SELECT COALESCE(MAX(ends_at), 0) / 86400000 FROM archives)

-- name: clearTimes
DELETE FROM service_times WHERE day >= (SELECT COALESCE(MAX(ends_at), 0) / 86400000 FROM archives)

-- name: clearUsageDays
DELETE FROM usage_days WHERE day >= (SELECT COALESCE(MAX(ends_at), 0) / 86400000 FROM archives)

-- name: clearUserCounts
DELETE FROM user_counts WHERE day >= (SELECT COALESCE(MAX(ends_at), 0) / 86400000 FROM archives)

-- name: countActiveUsers
-- Moves user days to the right counts: those that are not counted yet, and those whose previous active day has changed.
INSERT INTO user_counts (day, previous, users)
SELECT day, previous, CAST(SUM(users) AS BIGINT) FROM (
  SELECT day, previous, 1 AS users FROM user_days WHERE counted <> previous
  UNION ALL
  SELECT day, counted, -1 FROM user_days WHERE counted <> previous AND counted >= -1
) AS moved WHERE TRUE GROUP BY day, previous
ON CONFLICT (day, previous) DO UPDATE SET users = user_counts.users + excluded.users

-- name: deleteOldAccountSums
-- $1: the first kept day; $2: the first kept hour.
DELETE FROM account_sums WHERE (span, at, account) IN (
  SELECT span, at, account FROM account_sums WHERE (span = 1 AND at < $1) OR (span = 0 AND at < $2) LIMIT $3
)
RETURNING at

-- name: deleteOldAttempts
DELETE FROM offer_days WHERE (offer, day) IN (SELECT offer, day FROM offer_days WHERE day < $1 ORDER BY day LIMIT $2)
RETURNING day

-- name: deleteOldOfferSums
-- $1: the first kept day; $2: the first kept hour.
DELETE FROM offer_sums WHERE (span, at, primitive, service, provider, cause) IN (
  SELECT span, at, primitive, service, provider, cause FROM offer_sums WHERE (span = 1 AND at < $1) OR (span = 0 AND at < $2) LIMIT $3
)
RETURNING at

-- name: deleteOldTags
DELETE FROM tag_days WHERE (account, tag, day, value, key, primitive, service, provider) IN (
  SELECT account, tag, day, value, key, primitive, service, provider FROM tag_days WHERE day < $1 ORDER BY day LIMIT $2
)
RETURNING day

-- name: deleteOldTimes
DELETE FROM service_times WHERE (day, service, primitive, development, provider, measure, bucket) IN (
  SELECT day, service, primitive, development, provider, measure, bucket FROM service_times WHERE day < $1 ORDER BY day LIMIT $2
)
RETURNING day

-- name: deleteOldUsage
DELETE FROM usage_days WHERE (account, day, key, primitive, service, provider) IN (
  SELECT account, day, key, primitive, service, provider FROM usage_days WHERE day < $1 ORDER BY day LIMIT $2
)
RETURNING day

-- name: keepUsageSince
UPDATE analytics_state SET usage_since = $1 WHERE id = 1 AND usage_since < $1

-- name: linkActiveUsers
-- Days are added in any order. So the days after an added one get a new previous day where the added day is nearer.
UPDATE user_days SET previous = (
  SELECT MAX(earlier.day) FROM user_days AS earlier WHERE earlier.account_hash = user_days.account_hash AND earlier.day < user_days.day
)
WHERE (day, account_hash) IN (
  SELECT later.day, later.account_hash
  FROM (SELECT CAST(r.value ->> 0 AS BIGINT) AS day, CAST(r.value ->> 1 AS BIGINT) AS account_hash FROM json_each($1) AS r) AS added
  JOIN user_days AS later ON later.account_hash = added.account_hash AND later.day > added.day AND later.previous < added.day
)

-- name: noteCountedUsers
UPDATE user_days SET counted = previous WHERE counted <> previous

-- name: uncountKnownUsers
-- The accounts are kept, because some of them have no calls and could not be found again. All of them are counted
-- again.
UPDATE known_users SET counted = -2 WHERE counted <> -2
