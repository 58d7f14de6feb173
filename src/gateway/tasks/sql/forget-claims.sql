UPDATE tasks SET claimed_until = 0 WHERE open = 1 AND claimed_until > 0
