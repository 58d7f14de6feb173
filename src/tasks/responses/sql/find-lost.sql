SELECT id, account, part, service, previous, length(input) AS input_bytes, length(response) AS response_bytes, created_at, expires_at, run, run_until
FROM kept_responses WHERE run IN ('queued', 'in_progress', 'cancelling', 'deleting') AND run_until <= $1 LIMIT $2
