SELECT paid.id, paid.amount, paid.memo, paid.at, undone.at AS undone_at, undone.memo AS undone_memo
FROM transfers paid LEFT JOIN transfers undone ON undone.id = 'payout-undone:' || SUBSTR(paid.id, 8)
WHERE paid.from_account = $1 AND paid.to_account = $2 AND paid.id LIKE 'payout:%'
ORDER BY paid.at DESC, paid.id DESC LIMIT $3 OFFSET $4
