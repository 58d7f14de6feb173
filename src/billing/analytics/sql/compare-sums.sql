-- name: uncountedTable
-- Calls that the roll-up has not added yet.
CREATE TEMP TABLE uncounted (id TEXT PRIMARY KEY)

-- name: addUncounted
INSERT INTO uncounted (id) SELECT value ->> 0 FROM json_each($1)

-- name: compareAccounts
-- Finds days of accounts on which usage_days and the ledger differ. Locks that the roll-up doesn't count are left out
-- here too. Served and failed calls are one sum: earlier versions counted a call that was settled as free as served.
SELECT day, account, CAST(SUM(calls) AS BIGINT) AS calls, CAST(SUM(charged) AS BIGINT) AS charged, CAST(SUM(fee) AS BIGINT) AS fee
FROM (
  SELECT day, account, requests + failed AS calls, charged, fee FROM usage_days WHERE day >= $1
  UNION ALL
  SELECT resolved_at / 86400000, account, -1, -charged, -fee
  FROM locks
  WHERE resolved_at >= $1 * 86400000 AND account NOT IN ('tollgate:gateway', 'tollgate:anonymous')
    AND lock_detail NOT LIKE '%"run":true%' AND COALESCE(detail, '') NOT LIKE '{"outcome":"continued"%'
    AND NOT EXISTS (SELECT 1 FROM uncounted WHERE uncounted.id = locks.id)
) AS told
GROUP BY day, account
HAVING SUM(calls) <> 0 OR SUM(charged) <> 0 OR SUM(fee) <> 0
LIMIT 20

-- name: compareListings
-- Finds days of services on which service_days and usage_days differ.
SELECT day, primitive, service, provider, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(failed) AS BIGINT) AS failed, CAST(SUM(charged) AS BIGINT) AS charged, CAST(SUM(prompt) AS BIGINT) AS prompt, CAST(SUM(completion) AS BIGINT) AS completion, CAST(SUM(reasoning) AS BIGINT) AS reasoning, CAST(SUM(cached) AS BIGINT) AS cached
FROM (
  SELECT day, primitive, service, provider, requests, failed, charged, prompt, completion, reasoning, cached FROM service_days WHERE day >= $1
  UNION ALL
  SELECT day, primitive, service, provider, -requests, -failed, -charged, -prompt, -completion, -reasoning, -cached FROM usage_days WHERE day >= $1
) AS told
GROUP BY day, primitive, service, provider
HAVING SUM(requests) <> 0 OR SUM(failed) <> 0 OR SUM(charged) <> 0 OR SUM(prompt) <> 0 OR SUM(completion) <> 0 OR SUM(reasoning) <> 0 OR SUM(cached) <> 0
LIMIT 20

-- name: compareMarket
-- Finds days on which public_days and service_days differ.
SELECT day, development, primitive, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(failed) AS BIGINT) AS failed, CAST(SUM(charged) AS BIGINT) AS charged, CAST(SUM(prompt) AS BIGINT) AS prompt, CAST(SUM(completion) AS BIGINT) AS completion, CAST(SUM(reasoning) AS BIGINT) AS reasoning, CAST(SUM(cached) AS BIGINT) AS cached
FROM (
  SELECT day, development, primitive, requests, failed, charged, prompt, completion, reasoning, cached FROM public_days
  UNION ALL
  SELECT day, development, primitive, -requests, -failed, -charged, -prompt, -completion, -reasoning, -cached FROM service_days
) AS told
GROUP BY day, development, primitive
HAVING SUM(requests) <> 0 OR SUM(failed) <> 0 OR SUM(charged) <> 0 OR SUM(prompt) <> 0 OR SUM(completion) <> 0 OR SUM(reasoning) <> 0 OR SUM(cached) <> 0
LIMIT 20

-- name: compareOffers
-- Finds days on which offer_sums or account_sums have more calls or money than usage_days. They may have fewer, because
-- a gateway of an earlier version does not add to them.
SELECT day, name, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(failed) AS BIGINT) AS failed, CAST(SUM(charged) AS BIGINT) AS charged, CAST(SUM(fee) AS BIGINT) AS fee
FROM (
  SELECT at AS day, service AS name, requests, failed, charged, fee FROM offer_sums WHERE span = 1 AND at >= $1
  UNION ALL
  SELECT day, service, -requests, -failed, -charged, -fee FROM usage_days WHERE day >= $1
  UNION ALL
  SELECT at, account, requests, failed, charged, fee FROM account_sums WHERE span = 1 AND at >= $1
  UNION ALL
  SELECT day, account, -requests, -failed, -charged, -fee FROM usage_days WHERE day >= $1
) AS told
GROUP BY day, name
HAVING SUM(requests) > 0 OR SUM(failed) > 0 OR SUM(charged) > 0 OR SUM(fee) > 0
LIMIT 20

-- name: compareUsers
-- Finds days on which user_days has another number of users than usage_days has accounts.
SELECT day, CAST(SUM(users) AS BIGINT) AS users FROM (
  SELECT day, COUNT(*) AS users FROM user_days WHERE day >= $1 GROUP BY day
  UNION ALL
  SELECT day, -COUNT(DISTINCT account) FROM usage_days WHERE day >= $1 AND requests > 0 GROUP BY day
) AS told
GROUP BY day HAVING SUM(users) <> 0 LIMIT 20

-- name: compareTags
-- Finds days of accounts on which a tag has more calls or charges than the account.
SELECT day, account, tag, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(charged) AS BIGINT) AS charged
FROM (
  SELECT day, account, tag, requests, charged FROM tag_days WHERE day >= $1
  UNION ALL
  SELECT usage.day, usage.account, tags.tag, -usage.requests, -usage.charged
  FROM (SELECT DISTINCT day, account, tag FROM tag_days WHERE day >= $1) AS tags
  JOIN usage_days AS usage ON usage.account = tags.account AND usage.day = tags.day
) AS told
GROUP BY day, account, tag
HAVING SUM(requests) > 0 OR SUM(charged) > 0
LIMIT 20

-- name: comparePreviousDays
-- Finds days of users whose column previous is not their last active day before.
SELECT day, COUNT(*) AS users FROM (
  SELECT day, previous, LAG(day) OVER (PARTITION BY account_hash ORDER BY day) AS earlier FROM user_days
) AS told
WHERE previous <> COALESCE(earlier, -1)
GROUP BY day LIMIT 20

-- name: compareUserCounts
-- Finds days for which user_counts and user_days have different numbers of users.
SELECT day, CAST(SUM(ABS(users)) AS BIGINT) AS users FROM (
  SELECT day, previous, SUM(users) AS users FROM (
    SELECT day, previous, users FROM user_counts
    UNION ALL
    SELECT day, counted, -COUNT(*) FROM user_days WHERE counted >= -1 GROUP BY day, counted
  ) AS told GROUP BY day, previous
) AS compared
WHERE users <> 0 GROUP BY day LIMIT 20

-- name: compareKnownCounts
-- Finds days for which known_counts and known_users have different numbers of accounts.
SELECT since AS day, CAST(SUM(ABS(users)) AS BIGINT) AS users FROM (
  SELECT since, wallet, SUM(users) AS users FROM (
    SELECT since, wallet, users FROM known_counts
    UNION ALL
    SELECT counted, wallet, -COUNT(*) FROM known_users WHERE counted >= 0 GROUP BY counted, wallet
  ) AS told GROUP BY since, wallet
) AS compared
WHERE users <> 0 GROUP BY since LIMIT 20
