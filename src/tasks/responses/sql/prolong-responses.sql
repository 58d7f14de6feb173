-- $1: ids, see listParam.
UPDATE kept_responses SET expires_at = $2 WHERE expires_at < $2 AND id IN (SELECT value ->> 0 FROM json_each($1))
