-- Keys with notices, with the counters of their limits for the periods $1 to $3. A key without a counter may have spent
-- money before its limit got its period.
SELECT k.hash, k.account, k.label, k.spend_limit, k.limit_reset, k.limit_soft, k.limit_notify, k.limit_by, k.counted_since, b.spent,
  COALESCE(k.limit_since, (SELECT applied_at FROM migrations WHERE name = '0035_who-set-a-limit')) AS since
FROM api_keys AS k LEFT JOIN budgets AS b
  ON b.id = k.hash || ':' || CASE k.limit_reset WHEN 'daily' THEN $1 WHEN 'weekly' THEN $2 WHEN 'monthly' THEN $3 ELSE 'all' END
WHERE k.limit_notify IS NOT NULL AND k.spend_limit IS NOT NULL AND k.hash > $4 AND (b.id IS NOT NULL OR k.counted_since IS NOT NULL)
ORDER BY k.hash LIMIT $5
