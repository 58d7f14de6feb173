-- name: noteUse
INSERT INTO unfunded_accounts (account, used_at, look_at) VALUES ($1, $2, $3)
ON CONFLICT (account) DO UPDATE SET used_at = excluded.used_at

-- name: listDue
SELECT account, used_at FROM unfunded_accounts WHERE look_at <= $1 ORDER BY look_at LIMIT $2

-- name: findStored
-- `stored`: there is something to forget of account $1. `stays`: it belongs to others, the operator has named, limited,
-- stopped or noted it, a deposit is on its way to it, or it is the provider $2, or one that has offered or earned
-- something, by its account: the id of an organisation as a provider is derived.
SELECT CASE WHEN EXISTS (SELECT 1 FROM api_keys WHERE account = $1) OR EXISTS (SELECT 1 FROM key_names WHERE account = $1)
    OR EXISTS (SELECT 1 FROM account_limits WHERE account = $1) OR EXISTS (SELECT 1 FROM account_webhooks WHERE account = $1)
    OR EXISTS (SELECT 1 FROM budget_notices WHERE account = $1) OR EXISTS (SELECT 1 FROM provider_keys WHERE account = $1)
    OR EXISTS (SELECT 1 FROM wallets WHERE account = $1) OR EXISTS (SELECT 1 FROM members WHERE account = $1)
    OR EXISTS (SELECT 1 FROM consumers WHERE account = $1) THEN 1 ELSE 0 END AS stored,
  CASE WHEN EXISTS (SELECT 1 FROM members WHERE member = $1)
    OR EXISTS (SELECT 1 FROM consumers WHERE account = $1 AND (state_at IS NOT NULL OR (made_by IS NULL AND label <> '')))
    OR EXISTS (SELECT 1 FROM account_limits WHERE account = $1 AND subject = 'operator')
    OR EXISTS (SELECT 1 FROM api_keys WHERE account = $1 AND limit_by = 'operator')
    OR EXISTS (SELECT 1 FROM account_notes WHERE account = $1)
    OR EXISTS (SELECT 1 FROM deposits WHERE account = $1 AND state IN ('received', 'crediting', 'reversing'))
    OR EXISTS (SELECT 1 FROM provider_registrations WHERE account = $1)
    OR EXISTS (SELECT 1 FROM provider_connections WHERE provider = $2) THEN 1 ELSE 0 END AS stays

-- name: listMembersOf
SELECT member FROM members WHERE account = $1

-- name: lookLater
UPDATE unfunded_accounts SET used_at = $3, look_at = $4 WHERE account = $1 AND used_at = $2

-- name: forgetUse
DELETE FROM unfunded_accounts WHERE account = $1 AND used_at = $2

-- name: holdUse
-- A use that is noted meanwhile waits, or is seen by the statements that follow.
UPDATE unfunded_accounts SET look_at = look_at WHERE account = $1 AND used_at = $2

-- name: forgetKeys
DELETE FROM api_keys WHERE account = (SELECT account FROM unfunded_accounts WHERE account = $1 AND used_at = $2)

-- name: forgetNames
DELETE FROM key_names WHERE account = (SELECT account FROM unfunded_accounts WHERE account = $1 AND used_at = $2)

-- name: forgetLimits
DELETE FROM account_limits WHERE account = (SELECT account FROM unfunded_accounts WHERE account = $1 AND used_at = $2)

-- name: forgetWebhook
DELETE FROM account_webhooks WHERE account = (SELECT account FROM unfunded_accounts WHERE account = $1 AND used_at = $2)

-- name: forgetNotices
DELETE FROM budget_notices WHERE account = (SELECT account FROM unfunded_accounts WHERE account = $1 AND used_at = $2)

-- name: forgetProviderKeys
DELETE FROM provider_keys WHERE account = (SELECT account FROM unfunded_accounts WHERE account = $1 AND used_at = $2)

-- name: forgetWallets
DELETE FROM wallets WHERE account = (SELECT account FROM unfunded_accounts WHERE account = $1 AND used_at = $2)

-- name: forgetSessions
DELETE FROM web_sessions WHERE account = (SELECT account FROM unfunded_accounts WHERE account = $1 AND used_at = $2)

-- name: forgetMembers
DELETE FROM members WHERE account = (SELECT account FROM unfunded_accounts WHERE account = $1 AND used_at = $2)

-- name: forgetAccount
DELETE FROM consumers WHERE account = (SELECT account FROM unfunded_accounts WHERE account = $1 AND used_at = $2)
