-- The number of users that were active on `day` and whose previous active day is `previous`. So the users of a range
-- are counted without reading a row per user.
CREATE TABLE user_counts (
  day BIGINT NOT NULL,
  previous BIGINT NOT NULL,
  users BIGINT NOT NULL,
  PRIMARY KEY (day, previous)
);
-- The number of accounts that are known since a day.
CREATE TABLE known_counts (
  since BIGINT NOT NULL,
  wallet BIGINT NOT NULL,
  users BIGINT NOT NULL,
  PRIMARY KEY (since, wallet)
);
-- `counted` is the row of user_counts, or of known_counts, in which this row is counted; -2: not counted yet. An older
-- gateway, which does not know these counts, leaves its rows for a newer one to count. Exception: if an older gateway
-- rebuilds the figures, it deletes users but not their counts.
ALTER TABLE user_days ADD COLUMN counted BIGINT NOT NULL DEFAULT -2;
ALTER TABLE known_users ADD COLUMN counted BIGINT NOT NULL DEFAULT -2;
INSERT INTO user_counts (day, previous, users) SELECT day, previous, COUNT(*) FROM user_days GROUP BY day, previous;
INSERT INTO known_counts (since, wallet, users) SELECT since, wallet, COUNT(*) FROM known_users GROUP BY since, wallet;
UPDATE user_days SET counted = previous;
UPDATE known_users SET counted = since;
CREATE INDEX user_days_uncounted ON user_days (day) WHERE counted <> previous;
CREATE INDEX known_users_uncounted ON known_users (since) WHERE counted <> since;
-- Counted rows are not scanned any more.
DROP INDEX user_days_previous;
DROP INDEX known_users_since;

-- Each comparison of a treasury looks for deposits and withdrawals above a height. The indexes keep it from reading all
-- of them.
CREATE INDEX withdrawals_height ON withdrawals (network, height) WHERE height IS NOT NULL;
CREATE INDEX withdrawals_signed ON withdrawals (network, id) WHERE state = 'signed';
CREATE INDEX deposits_height ON deposits (network, height) WHERE height IS NOT NULL;
