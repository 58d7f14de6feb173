SELECT id FROM locks WHERE state = 'held' AND expires_at <= $1 ORDER BY expires_at, id LIMIT $2
