UPDATE ledger_log SET position = $1, n = $2, hash = $3
