SELECT edge, settled, spent, as_of FROM carried_sums WHERE budget = $1
