UPDATE webhooks SET claim = NULL, attempts = $3, due_at = $4 WHERE id = $1 AND claim = $2
