-- $1: ids, see listParam.
SELECT id, expires_at FROM sessions WHERE expires_at > $2 AND id IN (SELECT value ->> 0 FROM json_each($1))
