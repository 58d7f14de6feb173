SELECT id FROM locks WHERE state = 'held' AND kept = 0 AND expires_at <= $1 ORDER BY expires_at, id LIMIT $2
