INSERT INTO consumers (account, label, created_at) VALUES ($1, $2, $3) ON CONFLICT (account) DO NOTHING RETURNING *
