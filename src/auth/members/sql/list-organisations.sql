SELECT m.*, COALESCE(c.label, '') AS label FROM members AS m LEFT JOIN consumers AS c ON c.account = m.account
WHERE m.member = $1 ORDER BY CASE WHEN c.made_by = $1 THEN 0 ELSE 1 END, m.created_at, m.account LIMIT $2 OFFSET $3
