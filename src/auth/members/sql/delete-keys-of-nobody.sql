DELETE FROM api_keys WHERE account = $1 AND member = $2
  AND NOT EXISTS (SELECT 1 FROM members WHERE members.account = $1 AND members.member = $2)
RETURNING hash
