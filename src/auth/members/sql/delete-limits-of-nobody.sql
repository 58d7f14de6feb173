DELETE FROM account_limits WHERE account = $1 AND subject = $2
  AND NOT EXISTS (SELECT 1 FROM members WHERE members.account = $1 AND members.member = $2)
