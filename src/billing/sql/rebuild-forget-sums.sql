-- The sums of days are of the journal that was: they are made anew, see the room analytics.
DELETE FROM analytics_cursors
