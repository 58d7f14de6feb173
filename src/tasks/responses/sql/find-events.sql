SELECT last, events FROM kept_events WHERE response = $1 AND last > $2 ORDER BY first LIMIT $3
