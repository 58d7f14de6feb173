SELECT COUNT(*) AS held FROM locks WHERE state = 'held'
