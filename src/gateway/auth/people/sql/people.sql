-- name: putPerson
INSERT INTO people (account, subject, name, admin_roles, organisations, refresh_token, answered_at, due_at, known_groups,
  groups_from)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (account) DO UPDATE SET name = excluded.name, admin_roles = excluded.admin_roles,
  organisations = excluded.organisations, refresh_token = excluded.refresh_token, answered_at = excluded.answered_at,
  due_at = excluded.due_at, known_groups = excluded.known_groups, groups_from = excluded.groups_from,
  asked_until = NULL, unclear = 0

-- name: findPerson
SELECT * FROM people WHERE account = $1

-- name: claimPeople
-- People who are due, each for one gateway, which has until $2 for them. It may end before it has the answer.
UPDATE people SET due_at = $2, asked_until = $2, unclear = CASE WHEN asked_until <= $1 THEN 1 ELSE unclear END WHERE due_at <= $1 AND account IN (
  SELECT account FROM people WHERE due_at <= $1 AND refresh_token IS NOT NULL ORDER BY due_at LIMIT $3
) RETURNING *

-- name: renewToken
-- Only while no newer sign-in has brought another one.
UPDATE people SET refresh_token = $3, asked_until = NULL, unclear = 0 WHERE account = $1 AND refresh_token = $2 RETURNING account

-- name: endRefresh
-- $3 is 1 if the answer may have been lost.
UPDATE people SET asked_until = NULL, unclear = CASE WHEN $3 = 1 THEN 1 ELSE unclear END
WHERE account = $1 AND refresh_token = $2

-- name: forgetToken
UPDATE people SET refresh_token = NULL, asked_until = NULL, unclear = 0 WHERE account = $1 AND refresh_token = $2 RETURNING account

-- name: askAt
UPDATE people SET due_at = $2 WHERE account = $1

-- name: listSilent
-- People about whom the provider has said nothing since $1.
SELECT * FROM people WHERE answered_at <= $1 ORDER BY answered_at LIMIT $2

-- name: listTokens
SELECT account, refresh_token FROM people WHERE refresh_token IS NOT NULL

-- name: listAbsent
-- People about whom the provider has said nothing since $1, and who are still signed in.
SELECT account FROM people WHERE answered_at <= $1
  AND EXISTS (SELECT 1 FROM web_sessions WHERE web_sessions.person = people.account) LIMIT $2

-- name: deletePerson
DELETE FROM people WHERE account = $1
