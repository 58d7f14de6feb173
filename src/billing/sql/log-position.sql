SELECT position, n, hash, noted FROM ledger_log
