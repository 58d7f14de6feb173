-- 1: the spending limit only sends notices and refuses nothing.
ALTER TABLE api_keys ADD COLUMN limit_soft BIGINT NOT NULL DEFAULT 0;
-- JSON array of the percentages of the limit that cause a notice; NULL for none.
ALTER TABLE api_keys ADD COLUMN limit_notify TEXT;
-- NULL: the gateway's default rate.
ALTER TABLE api_keys ADD COLUMN requests_per_minute BIGINT;
ALTER TABLE api_keys ADD COLUMN tokens_per_minute BIGINT;
CREATE INDEX api_keys_notify ON api_keys (hash) WHERE limit_notify IS NOT NULL;

-- Limits beyond those of single keys.
CREATE TABLE account_limits (
  account TEXT NOT NULL,
  -- 'account' (set by the owner, for the whole account), 'operator' (set by the operator, for the whole account), or
  -- the id of a member, for what the member's keys spend.
  subject TEXT NOT NULL,
  -- The part before the period in the ledger's budget ids.
  name TEXT NOT NULL,
  -- The budgets: JSON array of {limit, reset, soft, notify}. Limits are decimal texts in micro-USD.
  rules TEXT NOT NULL,
  requests_per_minute BIGINT,
  tokens_per_minute BIGINT,
  -- 1: at least one budget has percentages that cause a notice.
  notifies BIGINT NOT NULL,
  PRIMARY KEY (account, subject)
);
CREATE INDEX account_limits_notify ON account_limits (account, subject) WHERE notifies = 1;

-- Webhooks for budget notices, one per account.
CREATE TABLE account_webhooks (
  account TEXT PRIMARY KEY,
  -- Address and signing key, encrypted.
  sealed TEXT NOT NULL
);

-- Budget notices: one for each percentage of a limit.
CREATE TABLE budget_notices (
  budget TEXT NOT NULL,
  spend_limit BIGINT NOT NULL,
  percent BIGINT NOT NULL,
  account TEXT NOT NULL,
  at BIGINT NOT NULL,
  -- The JSON body for the webhook.
  body TEXT NOT NULL,
  -- When the webhook is called next; NULL: it was called, was given up, or there is no webhook.
  due_at BIGINT,
  attempts BIGINT NOT NULL,
  PRIMARY KEY (budget, spend_limit, percent)
);
CREATE INDEX budget_notices_account ON budget_notices (account, at);
CREATE INDEX budget_notices_due ON budget_notices (due_at) WHERE due_at IS NOT NULL;
