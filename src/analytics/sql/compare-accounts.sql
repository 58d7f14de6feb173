-- Finds days of accounts on which usage_days and the ledger differ. Locks that the roll-up doesn't count are left out
-- here too.
SELECT day, account, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(failed) AS BIGINT) AS failed, CAST(SUM(charged) AS BIGINT) AS charged,
  CAST(SUM(fee) AS BIGINT) AS fee
FROM (
  SELECT day, account, requests, failed, charged, fee FROM usage_days WHERE day >= $1
  UNION ALL
  SELECT resolved_at / 86400000, account, CASE WHEN state = 'settled' THEN -1 ELSE 0 END, CASE WHEN state = 'settled' THEN 0 ELSE -1 END, -charged, -fee
  FROM locks
  WHERE resolved_at >= $1 * 86400000 AND account NOT IN ('tollgate:gateway', 'tollgate:anonymous')
    AND lock_detail NOT LIKE '%"run":true%' AND COALESCE(detail, '') NOT LIKE '{"outcome":"continued"%'
    AND NOT EXISTS (SELECT 1 FROM uncounted WHERE uncounted.id = locks.id)
) AS told
GROUP BY day, account
HAVING SUM(requests) <> 0 OR SUM(failed) <> 0 OR SUM(charged) <> 0 OR SUM(fee) <> 0
LIMIT 20
