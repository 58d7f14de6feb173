SELECT * FROM admin_keys WHERE hash = $1
