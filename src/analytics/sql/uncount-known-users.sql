-- The accounts are kept, because some of them have no calls and could not be found again. All of them are counted
-- again.
UPDATE known_users SET counted = -2 WHERE counted <> -2
