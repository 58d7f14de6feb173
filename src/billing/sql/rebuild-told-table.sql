-- The movements that the journal already has, from before the log.
CREATE TEMP TABLE told AS SELECT id, kind FROM journal
