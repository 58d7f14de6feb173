-- name: countSeedUses
-- What was sealed before a moment, and when the last of it expires. Both in epoch milliseconds.
SELECT 'files of batches' AS what, COUNT(*) AS count, MAX(expires_at) AS until FROM files WHERE created_at < $1
UNION ALL
SELECT 'responses', COUNT(*), MAX(expires_at) FROM kept_responses WHERE created_at < $1
UNION ALL
SELECT 'approvals', COUNT(*), MAX(expires_at) FROM approvals WHERE created_at < $1
UNION ALL
SELECT 'webhooks of tasks', COUNT(*), MAX(expires_at) FROM webhooks WHERE created_at < $1

-- name: listSecretClients
-- Clients that registered themselves. Few of them have a secret.
SELECT payload, expires_at FROM authorization_state WHERE kind = 'Client' AND expires_at > $1
