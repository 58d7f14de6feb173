-- Responses that a gateway makes in the background.
-- `run`: queued, in_progress, cancelling, or lost if its gateway is gone. NULL: it has ended, or was answered in place.
ALTER TABLE kept_responses ADD COLUMN run TEXT;
-- Until when its gateway is there at least. NULL as for `run`.
ALTER TABLE kept_responses ADD COLUMN run_until BIGINT;
-- It is not deleted for lack of room before this time, because its client can only get it here. NULL for others.
ALTER TABLE kept_responses ADD COLUMN held_until BIGINT;
CREATE INDEX kept_responses_run ON kept_responses (account, run_until) WHERE run IS NOT NULL;
-- The events of a response that is streamed, from number `first` to number `last`, sealed for the account.
CREATE TABLE kept_events (
  response TEXT NOT NULL REFERENCES kept_responses (id) ON DELETE CASCADE,
  first BIGINT NOT NULL,
  last BIGINT NOT NULL,
  events TEXT NOT NULL,
  PRIMARY KEY (response, first)
);
