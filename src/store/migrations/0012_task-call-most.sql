-- The most that a call of a task is charged: its provider's own estimate, where its lock is that of a dearer one that it could have gone to as well.
-- NULL: what is locked.
ALTER TABLE task_calls ADD COLUMN most BIGINT;
