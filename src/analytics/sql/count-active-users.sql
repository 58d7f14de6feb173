-- Moves user days to the right counts: those that are not counted yet, and those whose previous active day has changed.
INSERT INTO user_counts (day, previous, users)
SELECT day, previous, CAST(SUM(users) AS BIGINT) FROM (
  SELECT day, previous, 1 AS users FROM user_days WHERE counted <> previous
  UNION ALL
  SELECT day, counted, -1 FROM user_days WHERE counted <> previous AND counted >= -1
) AS moved WHERE TRUE GROUP BY day, previous
ON CONFLICT (day, previous) DO UPDATE SET users = user_counts.users + excluded.users
