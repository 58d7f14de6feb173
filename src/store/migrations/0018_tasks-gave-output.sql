-- 1 once the task has given output: it is paid from then on, unless it fails by its own words.
ALTER TABLE tasks ADD COLUMN gave_output BIGINT NOT NULL DEFAULT 0;
