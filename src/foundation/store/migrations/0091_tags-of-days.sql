-- The names of the tags of some days, and one tag of all accounts, are found in the index. Rows of days are removed by it
-- too.
DROP INDEX tag_days_day;
CREATE INDEX tag_days_day ON tag_days (day, tag);
