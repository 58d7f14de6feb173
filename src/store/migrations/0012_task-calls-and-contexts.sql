-- The most that a call of a task is charged: its provider's own estimate, where its lock is that of a dearer one that it could have gone to as well.
-- NULL: what is locked.
ALTER TABLE task_calls ADD COLUMN most BIGINT;

-- Every message of a context asks whose it is and who served it last, and an account may have any number of tasks.
CREATE INDEX tasks_context ON tasks (context_id, account, updated_at DESC) WHERE context_id IS NOT NULL;
