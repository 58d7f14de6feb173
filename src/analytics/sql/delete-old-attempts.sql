DELETE FROM offer_days WHERE (offer, day) IN (SELECT offer, day FROM offer_days WHERE day < $1 ORDER BY day LIMIT $2)
RETURNING day
