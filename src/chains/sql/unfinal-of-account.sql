SELECT COUNT(*) AS deposits FROM deposits WHERE account = $1 AND created_at <= $2 AND state IN ('crediting', 'credited', 'reversing')
