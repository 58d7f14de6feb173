SELECT id, expires_at FROM locks WHERE state = 'held' AND expires_at < $1 ORDER BY expires_at LIMIT 20
