-- Another version than $1 makes it NULL, which the table refuses: the whole transaction is undone.
UPDATE analytics_state SET version = CASE WHEN version = $1 THEN version + 1 END, as_of = $2, rolled_at = $3 WHERE id = 1
