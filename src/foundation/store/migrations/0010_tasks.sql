-- Tasks: work of providers that outlives the calls that began it. `task_id` is the provider's id. A row has the owner
-- and the state of a task. Its calls, whose locks are kept until it ends, are in task_calls.
CREATE TABLE tasks (
  primitive TEXT NOT NULL,
  task_id TEXT NOT NULL,
  service TEXT NOT NULL,
  account TEXT NOT NULL,
  -- The running call under which the task was begun.
  run TEXT,
  offer_id TEXT NOT NULL,
  provider TEXT NOT NULL,
  context_id TEXT,
  state TEXT NOT NULL,
  -- In the protocol's own format.
  notes TEXT NOT NULL,
  snapshot TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  -- The number of calls. The end of a task is only written if it has not changed, so no call is added between the
  -- reading of the calls and the end.
  calls BIGINT NOT NULL,
  -- The first end that was seen, with the use of each call, as JSON. The settlement uses it. NULL while the task runs.
  ended_at BIGINT,
  ending TEXT,
  -- 0 after the task has ended and all its calls are settled.
  open BIGINT NOT NULL,
  next_look_at BIGINT NOT NULL,
  -- The pause before the next look, in milliseconds.
  look_ms BIGINT NOT NULL,
  -- Until this time only one gateway looks at the task.
  claimed_until BIGINT NOT NULL,
  CONSTRAINT tasks_key PRIMARY KEY (primitive, task_id, service),
  CONSTRAINT tasks_open CHECK (open IN (0, 1) AND (open = 1 OR ended_at IS NOT NULL)),
  CONSTRAINT tasks_ending CHECK ((ended_at IS NULL) = (ending IS NULL))
);
CREATE INDEX tasks_owner ON tasks (account, primitive, updated_at DESC, task_id, service);
CREATE INDEX tasks_due ON tasks (next_look_at) WHERE open = 1;
CREATE INDEX tasks_ended ON tasks (ended_at) WHERE open = 0;

-- Billed calls of tasks. Their locks are kept until the task ends.
CREATE TABLE task_calls (
  call_id TEXT PRIMARY KEY,
  primitive TEXT NOT NULL,
  task_id TEXT NOT NULL,
  service TEXT NOT NULL,
  -- From 1, in the order in which the calls were added.
  position BIGINT NOT NULL,
  price TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  -- Until this time the lock is kept, if no gateway sees the end.
  kept_until BIGINT NOT NULL,
  -- The settlement as JSON; NULL until the call is settled.
  settlement TEXT,
  CONSTRAINT task_calls_reference FOREIGN KEY (primitive, task_id, service) REFERENCES tasks (primitive, task_id, service) ON DELETE CASCADE
);
CREATE INDEX task_calls_task ON task_calls (primitive, task_id, service, position);
