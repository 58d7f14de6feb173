-- When the limit of a key, or its percentages, became what they are: they are not told of for periods that had ended by then. NULL: they
-- are as they were when this migration was applied.
ALTER TABLE api_keys ADD COLUMN limit_since BIGINT;
-- Who set the limit: 'operator' or 'account'. NULL: it was set before this was noted.
ALTER TABLE api_keys ADD COLUMN limit_by TEXT;
-- The same for the budgets of an account or member.
ALTER TABLE account_limits ADD COLUMN since BIGINT;
