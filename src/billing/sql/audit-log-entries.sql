-- The view that says which accounts a movement changes: it is made once more, on the journal of this connection.
SELECT sql FROM sqlite_schema WHERE type = 'view' AND name = 'entries'
