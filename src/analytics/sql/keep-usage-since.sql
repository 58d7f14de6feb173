UPDATE analytics_state SET usage_since = $1 WHERE id = 1 AND usage_since < $1
