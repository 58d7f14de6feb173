-- Only the receiver that was spoken to: its client may have named another one meanwhile.
DELETE FROM webhooks WHERE id = $1 AND claim = $2 AND sealed = $3
