-- No row: the operator has frozen or closed account $1.
SELECT 1 AS yes WHERE NOT EXISTS (SELECT 1 FROM consumers WHERE account = $1 AND state <> 'open')
