-- Signed payments that may still arrive or be undone. The first list of states repeats the condition of the partial
-- index.
SELECT id, network, account, payer, amount, payment, request, state, transaction_id, event, height, credited, reason, created_at, updated_at, looks
FROM deposits
WHERE network = $1 AND state IN ('received', 'crediting', 'credited', 'reversing') AND state <> 'reversing' AND payment IS NOT NULL AND id > $2
ORDER BY id LIMIT 500
