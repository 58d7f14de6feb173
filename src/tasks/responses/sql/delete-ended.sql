DELETE FROM kept_responses WHERE id = $1 AND account = $2 AND (run IS NULL OR run = 'lost')
