-- Finds the move that a transfer belongs to, by its sender and its amount.
UPDATE treasury_acts SET deposit = $1, updated_at = $5
WHERE deposit IS NULL AND id = (
  SELECT due.id FROM treasury_acts AS due
  WHERE due.kind = 'move' AND due.to_network = $2 AND due.sender = $3 AND due.deposit IS NULL
    AND due.state IN ('requested', 'sending', 'sent') AND due.amount >= $4 AND due.amount - due.fee_max <= $4
  ORDER BY due.created_at, due.id LIMIT 1)
RETURNING id
