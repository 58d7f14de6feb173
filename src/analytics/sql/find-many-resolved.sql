-- $1: a JSON object of arrays, each with one id.
SELECT account, state, provider, charged, fee, resolved_at, lock_detail, usage, detail FROM locks
WHERE id IN (SELECT value ->> 0 FROM json_each($1)) AND resolved_at IS NOT NULL
