-- When the limit got its current period, if the key may have spent money before. That money is read from the books and
-- counts too. NULL: the limit's own counter is complete.
ALTER TABLE api_keys ADD COLUMN counted_since BIGINT;
-- The same for each budget of an account or member, one column per reset period.
ALTER TABLE account_limits ADD COLUMN daily_since BIGINT;
ALTER TABLE account_limits ADD COLUMN weekly_since BIGINT;
ALTER TABLE account_limits ADD COLUMN monthly_since BIGINT;
ALTER TABLE account_limits ADD COLUMN ever_since BIGINT;

-- Sums of calls that began in the period of a budget but are not in its counter. A sum is stored when it is first read,
-- and again when it is final.
CREATE TABLE carried_sums (
  -- The budget's id in the ledger.
  budget TEXT PRIMARY KEY,
  -- All calls that began before this time had ended, and `settled` has their charges. The next read begins here.
  edge BIGINT NOT NULL,
  settled BIGINT NOT NULL,
  -- The sum over all calls, including later ones, and whether one of them was still running.
  spent BIGINT NOT NULL,
  running BIGINT NOT NULL,
  -- When the books were read.
  as_of BIGINT NOT NULL,
  -- When the period ends; NULL for never.
  ends_at BIGINT
);
CREATE INDEX carried_sums_end ON carried_sums (ends_at) WHERE ends_at IS NOT NULL;
