DELETE FROM nodes WHERE id = $1 AND beat = $2
