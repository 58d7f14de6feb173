UPDATE analytics_state SET accounts_at = $1 WHERE id = 1
