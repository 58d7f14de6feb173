DELETE FROM usage_days
