-- name: changeMember
-- The last owner keeps the role.
UPDATE members SET
  role = CASE WHEN $3 = 1 THEN $4 ELSE role END,
  name = CASE WHEN $5 = 1 THEN $6 ELSE name END
WHERE account = $1 AND member = $2 AND ($3 = 0 OR $4 = 'owner' OR role <> 'owner'
  OR (SELECT COUNT(*) FROM members WHERE account = $1 AND role = 'owner') > 1)
RETURNING *

-- name: countMadeOrganisations
SELECT COUNT(*) AS made FROM consumers WHERE made_by = $1

-- name: deleteKeysOfNobody
DELETE FROM api_keys WHERE account = $1 AND member = $2
  AND NOT EXISTS (SELECT 1 FROM members WHERE members.account = $1 AND members.member = $2)
RETURNING hash

-- name: deleteLimitsOfNobody
DELETE FROM account_limits WHERE account = $1 AND subject = $2
  AND NOT EXISTS (SELECT 1 FROM members WHERE members.account = $1 AND members.member = $2)

-- name: deleteMember
-- The last owner is not deleted.
DELETE FROM members WHERE account = $1 AND member = $2 AND (role <> 'owner'
  OR (SELECT COUNT(*) FROM members WHERE account = $1 AND role = 'owner') > 1)
RETURNING member

-- name: findMember
SELECT * FROM members WHERE account = $1 AND member = $2

-- name: insertFirstOwner
-- No row if the organisation was not created.
INSERT INTO members (account, member, role, name, created_at)
SELECT account, $2, 'owner', $3, created_at FROM consumers WHERE account = $1 RETURNING *

-- name: insertMember
INSERT INTO members (account, member, role, name, created_at)
SELECT $1, $2, $3, $4, $5 WHERE (SELECT COUNT(*) FROM members WHERE account = $1) < $6
ON CONFLICT (account, member) DO NOTHING RETURNING *

-- name: insertOrganisation
-- No row if its creator has created $5 organisations already, or if another account has the label $2 or is named so ($6).
INSERT INTO consumers (account, label, created_at, made_by)
SELECT $1, $2, $3, $4 WHERE (SELECT COUNT(*) FROM consumers WHERE made_by = $4) < $5 AND NOT EXISTS (
  SELECT 1 FROM consumers AS others WHERE LOWER(others.label) = LOWER($2) OR others.account = $6
) RETURNING account

-- name: listKeysOfMember
SELECT hash FROM api_keys WHERE account = $1 AND member = $2

-- name: listMembers
SELECT * FROM members WHERE account = $1 ORDER BY created_at, member

-- name: listOrganisations
SELECT m.*, COALESCE(c.label, '') AS label FROM members AS m LEFT JOIN consumers AS c ON c.account = m.account
WHERE m.member = $1 ORDER BY CASE WHEN c.made_by = $1 THEN 0 ELSE 1 END, m.created_at, m.account LIMIT $2 OFFSET $3

-- name: noteFirstUse
-- An organisation that nobody acts for is unused from its beginning, see unfunded-accounts.ts. No row if it was not created.
INSERT INTO unfunded_accounts (account, used_at, look_at)
SELECT account, created_at, created_at + 86400000 FROM consumers WHERE account = $1 ON CONFLICT (account) DO NOTHING

-- name: touchMembers
-- Concurrent changes of one account's members wait for each other, so that each sees the current number of owners.
UPDATE members SET name = name WHERE account = $1
