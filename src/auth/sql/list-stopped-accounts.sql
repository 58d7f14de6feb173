SELECT account, state FROM consumers WHERE state <> 'open'
