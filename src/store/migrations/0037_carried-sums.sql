-- When the period of the limit became what it is, if the key may have spent before: that is looked up in the books and counts, too. NULL: the limit's
-- own counter has all that counts.
ALTER TABLE api_keys ADD COLUMN counted_since BIGINT;
-- The same for each budget of an account or member, by its reset.
ALTER TABLE account_limits ADD COLUMN daily_since BIGINT;
ALTER TABLE account_limits ADD COLUMN weekly_since BIGINT;
ALTER TABLE account_limits ADD COLUMN monthly_since BIGINT;
ALTER TABLE account_limits ADD COLUMN ever_since BIGINT;

-- What calls spent that began in the period of a budget and are not in its counter: as it was read first, and once nothing changes it any more.
CREATE TABLE carried_sums (
  -- The ledger's name.
  budget TEXT PRIMARY KEY,
  -- Calls that began before it are in `settled`: of those none ran any more. Later looks begin here.
  edge BIGINT NOT NULL,
  settled BIGINT NOT NULL,
  -- All of them, the later ones included, and whether one of them ran.
  spent BIGINT NOT NULL,
  running BIGINT NOT NULL,
  -- When the books were read.
  as_of BIGINT NOT NULL,
  -- When the period ends; NULL is never.
  ends_at BIGINT
);
CREATE INDEX carried_sums_end ON carried_sums (ends_at) WHERE ends_at IS NOT NULL;
