SELECT account, state, provider, charged, fee, resolved_at, lock_detail, usage, detail FROM locks WHERE id = $1 AND resolved_at IS NOT NULL
