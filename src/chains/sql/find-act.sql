SELECT id, kind, network, amount, bearer, to_network, address, sender, fee_max, deposit, arrived, reference, state, reason, created_at, updated_at FROM treasury_acts WHERE id = $1
