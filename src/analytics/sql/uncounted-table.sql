-- Calls that the roll-up has not added yet.
CREATE TEMP TABLE uncounted (id TEXT PRIMARY KEY)
