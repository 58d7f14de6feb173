-- Events during the downtime reached no gateway, so every open task gets a look now.
UPDATE tasks SET claimed_until = 0, next_look_at = CASE WHEN next_look_at > $1 THEN $1 ELSE next_look_at END
WHERE open = 1 AND (claimed_until > 0 OR next_look_at > $1)
