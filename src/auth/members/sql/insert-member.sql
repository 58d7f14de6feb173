INSERT INTO members (account, member, role, name, created_at)
SELECT $1, $2, $3, $4, $5 WHERE (SELECT COUNT(*) FROM members WHERE account = $1) < $6
ON CONFLICT (account, member) DO NOTHING RETURNING *
