DELETE FROM kept_events WHERE response IN (SELECT id FROM kept_responses WHERE id = $1 AND run = 'deleting')
