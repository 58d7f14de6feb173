-- The responses that have these items, the latest last. $1: the ids of items, see listParam.
SELECT kept_items.id AS item, kept_responses.id, kept_responses.account, part, service, previous, length(input) AS input_bytes,
  length(kept_responses.response) AS response_bytes, created_at, expires_at, run, run_until
FROM kept_items JOIN kept_responses ON kept_responses.id = kept_items.response
WHERE kept_items.account = $2 AND expires_at > $3 AND kept_items.id IN (SELECT value ->> 0 FROM json_each($1))
ORDER BY created_at
