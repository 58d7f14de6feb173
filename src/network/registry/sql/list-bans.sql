SELECT provider, reason, at FROM provider_bans
