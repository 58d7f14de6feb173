-- 1: the spending limit refuses nothing, and is told of alone.
ALTER TABLE api_keys ADD COLUMN limit_soft BIGINT NOT NULL DEFAULT 0;
-- JSON array of the percentages of the limit that are told of; NULL is none.
ALTER TABLE api_keys ADD COLUMN limit_notify TEXT;
-- NULL is the gateway's own rate.
ALTER TABLE api_keys ADD COLUMN requests_per_minute BIGINT;
ALTER TABLE api_keys ADD COLUMN tokens_per_minute BIGINT;
CREATE INDEX api_keys_notify ON api_keys (hash) WHERE limit_notify IS NOT NULL;

-- Limits beyond those of single keys.
CREATE TABLE account_limits (
  account TEXT NOT NULL,
  -- Who set them, or for whom: 'account' (its owner, for the whole account), 'operator' (the operator, for the whole
  -- account), or the id of a member, for what that one's keys spend.
  subject TEXT NOT NULL,
  -- The ledger's name of its budgets, before the period.
  name TEXT NOT NULL,
  -- Its budgets: JSON array of {limit, reset, soft, notify}, limits as decimal texts of micro-USD.
  rules TEXT NOT NULL,
  requests_per_minute BIGINT,
  tokens_per_minute BIGINT,
  -- 1: a budget has percentages that are told of.
  notifies BIGINT NOT NULL,
  PRIMARY KEY (account, subject)
);
CREATE INDEX account_limits_notify ON account_limits (account, subject) WHERE notifies = 1;

-- Where the owner of an account is told of its budgets.
CREATE TABLE account_webhooks (
  account TEXT PRIMARY KEY,
  -- Address and signing key, sealed.
  sealed TEXT NOT NULL
);

-- What was told of budgets: once for each percentage of a limit.
CREATE TABLE budget_notices (
  budget TEXT NOT NULL,
  spend_limit BIGINT NOT NULL,
  percent BIGINT NOT NULL,
  account TEXT NOT NULL,
  at BIGINT NOT NULL,
  -- JSON that the webhook is posted.
  body TEXT NOT NULL,
  -- When the webhook is posted next; NULL: it was, or was given up, or there is none.
  due_at BIGINT,
  attempts BIGINT NOT NULL,
  PRIMARY KEY (budget, spend_limit, percent)
);
CREATE INDEX budget_notices_account ON budget_notices (account, at);
CREATE INDEX budget_notices_due ON budget_notices (due_at) WHERE due_at IS NOT NULL;
