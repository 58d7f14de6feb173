SELECT label FROM consumers WHERE account <> $1 AND label <> ''
