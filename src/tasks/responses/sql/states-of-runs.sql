-- $1: JSON array of ids.
SELECT id, run FROM kept_responses WHERE id IN (SELECT value FROM json_each($1))
