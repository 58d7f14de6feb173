-- If a change of the task has moved the next poll meanwhile, the next poll stays there.
UPDATE tasks SET
  claimed_until = 0,
  look_ms = CASE WHEN next_look_at = $5 THEN $6 ELSE look_ms END,
  next_look_at = CASE WHEN next_look_at = $5 THEN $7 ELSE next_look_at END
WHERE primitive = $1 AND task_id = $2 AND service = $3 AND claimed_until = $4
