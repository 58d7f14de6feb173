DELETE FROM public_days
