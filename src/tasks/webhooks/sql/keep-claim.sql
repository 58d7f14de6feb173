UPDATE webhooks SET attempts = 0, due_at = $3 WHERE id = $1 AND claim = $2
