-- Counts the rows of an account and a day, which have a bound.
CREATE INDEX tag_days_account ON tag_days (account, day);
