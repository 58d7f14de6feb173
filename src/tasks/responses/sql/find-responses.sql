-- $1: ids, see listParam.
SELECT id, account, part, service, previous, length(input) AS input_bytes, length(response) AS response_bytes, created_at, expires_at, run, run_until
FROM kept_responses WHERE account = $2 AND expires_at > $3 AND id IN (SELECT value ->> 0 FROM json_each($1))
