SELECT * FROM members WHERE account = $1 ORDER BY created_at, member
