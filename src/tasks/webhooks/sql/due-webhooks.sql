-- Round robin: every account gets its first webhook before any account gets its second.
SELECT id, account, receiver FROM (
  SELECT id, account, receiver, due_at, row_number() OVER (PARTITION BY account ORDER BY due_at, id) AS turn FROM webhooks WHERE due_at <= $1
) AS due
WHERE turn <= $2 ORDER BY turn, due_at LIMIT $3
