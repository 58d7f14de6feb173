-- The part of the account that owns it: a restricted key. NULL: the whole account, and sessions from before.
ALTER TABLE sessions ADD COLUMN part TEXT;
