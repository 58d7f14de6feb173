UPDATE ledger_log SET position = 0, n = $1, hash = $2, noted = $1
