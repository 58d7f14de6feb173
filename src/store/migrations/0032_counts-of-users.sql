-- How many users were active on a day and last active on the day `previous` before it: users of a range are read without its users.
CREATE TABLE user_counts (
  day BIGINT NOT NULL,
  previous BIGINT NOT NULL,
  users BIGINT NOT NULL,
  PRIMARY KEY (day, previous)
);
-- How many accounts are known since a day.
CREATE TABLE known_counts (
  since BIGINT NOT NULL,
  wallet BIGINT NOT NULL,
  users BIGINT NOT NULL,
  PRIMARY KEY (since, wallet)
);
-- As which row of user_counts the row is counted, and as which of known_counts; -2: not yet. A gateway that knows no counts leaves rows for one that does, but for a rebuild: that one forgets users and leaves their counts.
ALTER TABLE user_days ADD COLUMN counted BIGINT NOT NULL DEFAULT -2;
ALTER TABLE known_users ADD COLUMN counted BIGINT NOT NULL DEFAULT -2;
INSERT INTO user_counts (day, previous, users) SELECT day, previous, COUNT(*) FROM user_days GROUP BY day, previous;
INSERT INTO known_counts (since, wallet, users) SELECT since, wallet, COUNT(*) FROM known_users GROUP BY since, wallet;
UPDATE user_days SET counted = previous;
UPDATE known_users SET counted = since;
CREATE INDEX user_days_uncounted ON user_days (day) WHERE counted <> previous;
CREATE INDEX known_users_uncounted ON known_users (since) WHERE counted <> since;
-- What is counted is not scanned any more.
DROP INDEX user_days_previous;
DROP INDEX known_users_since;

-- Each comparison of a treasury asks what came and left above a height: it reads that, and not all that ever did.
CREATE INDEX withdrawals_height ON withdrawals (network, height) WHERE height IS NOT NULL;
CREATE INDEX withdrawals_signed ON withdrawals (network, id) WHERE state = 'signed';
CREATE INDEX deposits_height ON deposits (network, height) WHERE height IS NOT NULL;
