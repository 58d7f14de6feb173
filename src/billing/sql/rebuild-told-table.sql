-- The movements that the journal has already, from before the log.
CREATE TEMP TABLE told AS SELECT id, kind FROM journal
