SELECT version, as_of, rolled_at, accounts_at, usage_since FROM analytics_state
