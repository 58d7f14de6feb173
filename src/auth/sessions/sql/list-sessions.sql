-- $2 is 1 to list only the sessions of the key $3. A session whose key was deleted is over.
SELECT * FROM web_sessions WHERE account = $1 AND ($2 = 0 OR key_hash = $3) AND expires_at > $4 AND seen_at > $5
AND (signed_in_by <> 'api_key' OR EXISTS (SELECT 1 FROM api_keys WHERE hash = key_hash))
ORDER BY seen_at DESC, id
