-- Calls that the roll-up has not reached.
CREATE TEMP TABLE uncounted (id TEXT PRIMARY KEY)
