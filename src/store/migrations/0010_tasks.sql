-- Work of providers that outlives the calls that began it, by the provider's own ids: whose it is, and what is locked for it until it ends.
CREATE TABLE tasks (
  primitive TEXT NOT NULL,
  task_id TEXT NOT NULL,
  service TEXT NOT NULL,
  account TEXT NOT NULL,
  -- The running call under which it was begun.
  run TEXT,
  offer_id TEXT NOT NULL,
  provider TEXT NOT NULL,
  context_id TEXT,
  state TEXT NOT NULL,
  -- The protocol's own.
  notes TEXT NOT NULL,
  snapshot TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  -- Counts the calls that were added, so that none is added between the reading of them and the end.
  calls BIGINT NOT NULL,
  -- The first end that was seen, and what each call used, as JSON: whoever settles goes by it. NULL while it goes on.
  ended_at BIGINT,
  ending TEXT,
  -- 0 once it has ended and all its calls are settled.
  open BIGINT NOT NULL,
  next_look_at BIGINT NOT NULL,
  -- The pause before that look.
  look_ms BIGINT NOT NULL,
  -- Until then one gateway alone looks at it.
  claimed_until BIGINT NOT NULL,
  CONSTRAINT tasks_key PRIMARY KEY (primitive, task_id, service),
  CONSTRAINT tasks_open CHECK (open IN (0, 1) AND (open = 1 OR ended_at IS NOT NULL)),
  CONSTRAINT tasks_ending CHECK ((ended_at IS NULL) = (ending IS NULL))
);
CREATE INDEX tasks_owner ON tasks (account, primitive, updated_at DESC, task_id, service);
CREATE INDEX tasks_due ON tasks (next_look_at) WHERE open = 1;
CREATE INDEX tasks_ended ON tasks (ended_at) WHERE open = 0;

-- Billed calls of tasks, whose locks are kept until the end.
CREATE TABLE task_calls (
  call_id TEXT PRIMARY KEY,
  primitive TEXT NOT NULL,
  task_id TEXT NOT NULL,
  service TEXT NOT NULL,
  -- From 1, in the order in which they were added.
  position BIGINT NOT NULL,
  price TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  -- Until when the lock is kept should nobody see the end.
  kept_until BIGINT NOT NULL,
  -- What was charged, as JSON; NULL until it is settled.
  settlement TEXT,
  CONSTRAINT task_calls_reference FOREIGN KEY (primitive, task_id, service) REFERENCES tasks (primitive, task_id, service) ON DELETE CASCADE
);
CREATE INDEX task_calls_task ON task_calls (primitive, task_id, service, position);
