-- Returns a row if the owner may use the context: the first user may, and so may the whole account if one of its runs
-- or restricted keys was first. `run` is TaskOwner.within.
INSERT INTO contexts (primitive, service, context_id, account, run, used_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (primitive, service, context_id) DO UPDATE SET used_at = excluded.used_at
WHERE contexts.account = excluded.account AND (excluded.run IS NULL OR contexts.run = excluded.run)
RETURNING account
