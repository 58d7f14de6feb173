SELECT count(*) AS running FROM kept_responses WHERE account = $1 AND run IN ('queued', 'in_progress', 'cancelling', 'deleting')
