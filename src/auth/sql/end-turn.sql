DELETE FROM consumers WHERE account = $1
