-- Budgets of all calls of an account that have one tag: a JSON list beside the budgets of `rules`. Gateways of an older
-- version do not know this column, so they refuse nothing because of it.
ALTER TABLE account_limits ADD COLUMN tag_rules TEXT NOT NULL DEFAULT '[]';
