UPDATE admin_log SET status = $2 WHERE id = $1
