INSERT INTO uncounted (id) SELECT value ->> 0 FROM json_each($1)
