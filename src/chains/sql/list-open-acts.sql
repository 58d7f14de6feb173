SELECT id, kind, network, amount, bearer, to_network, address, sender, fee_max, deposit, arrived, reference, state, reason, created_at, updated_at
FROM treasury_acts WHERE state NOT IN ('done', 'refused') AND (created_at > $1 OR (created_at = $1 AND id > $2)) ORDER BY created_at, id LIMIT 100
