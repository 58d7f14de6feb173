DELETE FROM kept_items WHERE response IN (SELECT id FROM kept_responses WHERE id = $1 AND run = 'deleting')
