-- What happened while nobody was there was told to nobody: all are looked at once.
UPDATE tasks SET claimed_until = 0, next_look_at = CASE WHEN next_look_at > $1 THEN $1 ELSE next_look_at END
WHERE open = 1 AND (claimed_until > 0 OR next_look_at > $1)
