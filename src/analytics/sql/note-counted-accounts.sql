UPDATE known_users SET counted = since WHERE counted <> since
