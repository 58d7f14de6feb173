UPDATE analytics_state SET version = version + 1 WHERE id = 1
