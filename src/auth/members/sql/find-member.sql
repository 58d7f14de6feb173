SELECT * FROM members WHERE account = $1 AND member = $2
