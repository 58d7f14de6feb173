SELECT chain, n, position FROM analytics_cursors
