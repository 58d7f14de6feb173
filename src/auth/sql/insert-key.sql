INSERT INTO api_keys (hash, account, label, development, disabled, created_at, expires_at, spend_limit, limit_reset, allowed_services,
  limit_soft, limit_notify, requests_per_minute, tokens_per_minute, member, limit_by, limit_since)
SELECT $1, $2, $3, $4, 0, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $5
WHERE (SELECT COUNT(*) FROM api_keys WHERE account = $2) < $16
  AND (CAST($14 AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM members WHERE account = $2 AND member = $14 AND role <> 'viewer'))
RETURNING *
