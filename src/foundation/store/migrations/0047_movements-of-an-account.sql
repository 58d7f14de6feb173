-- The movements of an account are listed by their time. The new indexes also serve the sums of all transfers of an
-- account, for which the old ones were.
DROP INDEX transfers_to;
DROP INDEX transfers_from;
CREATE INDEX transfers_to ON transfers (to_account, at, id);
CREATE INDEX transfers_from ON transfers (from_account, at, id);
