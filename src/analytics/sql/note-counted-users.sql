UPDATE user_days SET counted = previous WHERE counted <> previous
