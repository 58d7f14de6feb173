CREATE INDEX tasks_open_of_account ON tasks (account) WHERE open = 1 AND ended_at IS NULL;
