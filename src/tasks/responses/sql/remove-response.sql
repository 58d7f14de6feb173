-- Only one that is under way: the end of another one is stored.
DELETE FROM kept_responses WHERE id = $1 AND account = $2 AND run IN ('queued', 'in_progress', 'cancelling', 'deleting')
