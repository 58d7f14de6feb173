SELECT COUNT(*) AS made FROM consumers WHERE made_by = $1
