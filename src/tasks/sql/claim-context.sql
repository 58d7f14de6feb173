-- A row comes back for whoever may use the context: who used it first, and the account itself, where a run or a member's key of it did.
-- `run` is TaskOwner.within.
INSERT INTO contexts (primitive, service, context_id, account, run, used_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (primitive, service, context_id) DO UPDATE SET used_at = excluded.used_at
WHERE contexts.account = excluded.account AND (excluded.run IS NULL OR contexts.run = excluded.run)
RETURNING account
