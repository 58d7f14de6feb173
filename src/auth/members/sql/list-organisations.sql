SELECT m.*, COALESCE(c.label, '') AS label FROM members AS m LEFT JOIN consumers AS c ON c.account = m.account
WHERE m.member = $1 ORDER BY m.created_at, m.account LIMIT $2
