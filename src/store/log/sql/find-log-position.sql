SELECT position, n, hash FROM ledger_log
