-- 1 after the task has given output. From then on the task is paid, unless it reports its own failure.
ALTER TABLE tasks ADD COLUMN gave_output BIGINT NOT NULL DEFAULT 0;
