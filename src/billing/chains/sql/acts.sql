-- name: insertAct
INSERT INTO treasury_acts (id, kind, network, amount, bearer, to_network, address, sender, fee_max, reference, state, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'requested', $11, $11)
ON CONFLICT DO NOTHING
RETURNING id

-- name: findAct
SELECT id, kind, network, amount, bearer, to_network, address, sender, fee_max, deposit, arrived, reference, state, reason, created_at, updated_at FROM treasury_acts WHERE id = $1

-- name: findActOfDeposit
SELECT id, kind, network, amount, bearer, to_network, address, sender, fee_max, deposit, arrived, reference, state, reason, created_at, updated_at FROM treasury_acts WHERE deposit = $1

-- name: listActs
SELECT id, kind, network, amount, bearer, to_network, address, sender, fee_max, deposit, arrived, reference, state, reason, created_at, updated_at
FROM treasury_acts WHERE created_at < $1 OR (created_at = $1 AND id < $2) ORDER BY created_at DESC, id DESC LIMIT $3

-- name: listOpenActs
SELECT id, kind, network, amount, bearer, to_network, address, sender, fee_max, deposit, arrived, reference, state, reason, created_at, updated_at
FROM treasury_acts WHERE state NOT IN ('done', 'refused') AND (created_at > $1 OR (created_at = $1 AND id > $2)) ORDER BY created_at, id LIMIT 100

-- name: moveAct
-- Moves an act from state $2, so only one caller makes each step. The arrival of a refused move goes back into
-- suspense. An act that is done has no reason.
UPDATE treasury_acts SET state = $3, reason = CASE WHEN $3 = 'done' THEN NULL ELSE COALESCE($4, reason) END, arrived = COALESCE($5, arrived), deposit = CASE WHEN $3 = 'refused' THEN NULL ELSE deposit END, updated_at = $6 WHERE id = $1 AND state = $2 RETURNING id

-- name: tieArrival
-- Finds the move that a transfer belongs to, by its sender and its amount.
UPDATE treasury_acts SET deposit = $1, updated_at = $5
WHERE deposit IS NULL AND id = (
  SELECT due.id FROM treasury_acts AS due
  WHERE due.kind = 'move' AND due.to_network = $2 AND due.sender = $3 AND due.deposit IS NULL
    AND due.state IN ('requested', 'sending', 'sent') AND due.amount >= $4 AND due.amount - due.fee_max <= $4
  ORDER BY due.created_at, due.id LIMIT 1)
RETURNING id

-- name: nameArrival
UPDATE treasury_acts SET deposit = $2, updated_at = $3 WHERE id = $1 AND kind = 'move' AND deposit IS NULL AND state IN ('sending', 'sent') RETURNING id

-- name: forgetArrival
UPDATE treasury_acts SET deposit = NULL, updated_at = $3 WHERE id = $1 AND deposit = $2 AND state <> 'done' RETURNING id

-- name: countHandoverMoves
-- Counts the moves of a handover, which are known by the form of their ids, and reads the time of the newest.
SELECT COUNT(*) AS moves, CAST(COALESCE(SUM(CASE WHEN state IN ('done', 'refused') THEN 0 ELSE 1 END), 0) AS BIGINT) AS under_way, COALESCE(MAX(created_at), 0) AS newest
FROM treasury_acts WHERE kind = 'move' AND network = $1 AND to_network = $1 AND sender = $2 AND id LIKE $3
