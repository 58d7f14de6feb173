-- The part of the account that a quote is for: the call of a run token, or a restricted key. NULL: the whole account.
ALTER TABLE quotes ADD COLUMN part TEXT;
