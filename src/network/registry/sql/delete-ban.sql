DELETE FROM provider_bans WHERE provider = $1 RETURNING provider
