SELECT * FROM consumers WHERE account = $1
