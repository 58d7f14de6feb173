SELECT id FROM transfers WHERE id = ANY ($1::text[])
