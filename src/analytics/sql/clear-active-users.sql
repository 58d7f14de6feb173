DELETE FROM user_days
