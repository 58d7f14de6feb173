INSERT INTO nodes (id, url, beat, started_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (id) DO UPDATE SET url = excluded.url, beat = nodes.beat + 1
