-- What an account may do: 'open', 'frozen' (no new calls, no withdrawals) or 'closed' (no requests at all). A missing
-- row is an open account.
ALTER TABLE consumers ADD COLUMN state TEXT NOT NULL DEFAULT 'open';
-- Why and when the operator changed the state last.
ALTER TABLE consumers ADD COLUMN state_reason TEXT NOT NULL DEFAULT '';
ALTER TABLE consumers ADD COLUMN state_at BIGINT;
-- Each gateway reads these rows once a second while it gets requests.
CREATE INDEX consumers_stopped ON consumers (account) WHERE state <> 'open';
