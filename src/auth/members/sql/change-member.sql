-- The last owner keeps the role.
UPDATE members SET
  role = CASE WHEN $3 = 1 THEN $4 ELSE role END,
  name = CASE WHEN $5 = 1 THEN $6 ELSE name END
WHERE account = $1 AND member = $2 AND ($3 = 0 OR $4 = 'owner' OR role <> 'owner'
  OR (SELECT COUNT(*) FROM members WHERE account = $1 AND role = 'owner') > 1)
RETURNING *
