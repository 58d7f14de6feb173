-- The last owner is not deleted.
DELETE FROM members WHERE account = $1 AND member = $2 AND (role <> 'owner'
  OR (SELECT COUNT(*) FROM members WHERE account = $1 AND role = 'owner') > 1)
RETURNING member
