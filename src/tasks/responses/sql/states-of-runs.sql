-- $1: ids, see listParam.
SELECT id, run FROM kept_responses WHERE id IN (SELECT value ->> 0 FROM json_each($1))
