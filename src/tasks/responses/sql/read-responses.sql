-- $1: ids, see listParam.
SELECT id, input, response, run FROM kept_responses WHERE account = $2 AND id IN (SELECT value ->> 0 FROM json_each($1))
