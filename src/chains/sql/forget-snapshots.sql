DELETE FROM treasury_snapshots WHERE network = $1 AND treasury = $2 AND height < $3
