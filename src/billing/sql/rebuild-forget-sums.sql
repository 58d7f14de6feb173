-- The daily sums were made from the lost journal. They are built again, see the room analytics.
DELETE FROM analytics_cursors
