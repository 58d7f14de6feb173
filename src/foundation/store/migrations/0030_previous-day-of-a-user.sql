-- The user's previous active day; -1 for the first one. The users of a range of days are the rows in it whose previous
-- day is before the range.
ALTER TABLE user_days ADD COLUMN previous BIGINT NOT NULL DEFAULT -1;
CREATE INDEX user_days_account ON user_days (account_hash, day);
UPDATE user_days SET previous = COALESCE(
  (SELECT MAX(earlier.day) FROM user_days AS earlier WHERE earlier.account_hash = user_days.account_hash AND earlier.day < user_days.day), -1
);
CREATE INDEX user_days_previous ON user_days (day, previous, account_hash);
