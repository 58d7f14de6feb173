DELETE FROM carried_sums WHERE ends_at < $1
