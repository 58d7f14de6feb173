SELECT DISTINCT day, provider FROM service_days
WHERE day BETWEEN $1 AND $2 AND development <= $3 AND requests > 0
