-- The accounts stay, as some of them have not called: all are counted anew.
UPDATE known_users SET counted = -2 WHERE counted <> -2
