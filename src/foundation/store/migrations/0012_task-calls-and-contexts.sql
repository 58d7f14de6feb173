-- The most that a call of a task can be charged: the estimate of its provider. The lock may be larger, because the call
-- could also have gone to a dearer provider. NULL: the locked amount.
ALTER TABLE task_calls ADD COLUMN most BIGINT;

-- Each message of a context looks up its owner and its last provider, and an account may have any number of tasks.
CREATE INDEX tasks_context ON tasks (context_id, account, updated_at DESC) WHERE context_id IS NOT NULL;
