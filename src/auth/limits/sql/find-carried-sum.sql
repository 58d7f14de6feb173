SELECT edge, settled, spent, running, as_of FROM carried_sums WHERE budget = $1
