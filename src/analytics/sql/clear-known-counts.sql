DELETE FROM known_counts
