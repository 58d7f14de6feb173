SELECT max(last) AS last FROM kept_events WHERE response = $1
