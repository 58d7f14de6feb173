INSERT INTO blob_holders (id, url) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET url = excluded.url
