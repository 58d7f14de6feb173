SELECT cursor, height, balance FROM treasury_snapshots WHERE network = $1 AND treasury = $2 ORDER BY height DESC LIMIT $3
