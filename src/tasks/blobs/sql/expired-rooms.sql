DELETE FROM blob_rooms WHERE id IN (SELECT id FROM blob_rooms WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2) RETURNING id
