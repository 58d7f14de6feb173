SELECT 1 AS called FROM service_days WHERE service = $1 AND primitive = $2 AND day BETWEEN $3 AND $4 AND development <= $5 LIMIT 1
