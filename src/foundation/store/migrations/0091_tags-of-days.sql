-- This index finds which tags some days have, and the rows of one tag of all accounts. A rebuild of
-- the figures removes rows by day with it.
DROP INDEX tag_days_day;
CREATE INDEX tag_days_day ON tag_days (day, tag);
