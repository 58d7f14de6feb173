-- No row if the organisation was not created.
INSERT INTO members (account, member, role, name, created_at)
SELECT account, $2, 'owner', $3, created_at FROM consumers WHERE account = $1 RETURNING *
