-- If the version is not $1, it becomes NULL. The table refuses NULL, so the whole transaction is rolled back.
UPDATE analytics_state SET version = CASE WHEN version = $1 THEN version + 1 END, as_of = $2, rolled_at = $3 WHERE id = 1
