-- $1: JSON array of ids.
SELECT id, input, response, run FROM kept_responses WHERE account = $2 AND id IN (SELECT value FROM json_each($1))
