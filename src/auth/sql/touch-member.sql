UPDATE members SET name = name WHERE account = $1 AND member = $2
