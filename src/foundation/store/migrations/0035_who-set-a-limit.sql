-- When the limit of a key or its percentages were last changed. No notices are sent for periods that had ended before.
-- NULL: not changed since this migration.
ALTER TABLE api_keys ADD COLUMN limit_since BIGINT;
-- 'operator' or 'account': who set the limit. NULL: it was set before this column existed.
ALTER TABLE api_keys ADD COLUMN limit_by TEXT;
-- The same for the budgets of an account or member.
ALTER TABLE account_limits ADD COLUMN since BIGINT;
