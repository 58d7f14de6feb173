SELECT COUNT(*) AS deposits FROM deposits WHERE account = $1 AND state IN ('crediting', 'credited', 'reversing')
