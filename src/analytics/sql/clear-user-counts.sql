DELETE FROM user_counts
