SELECT account, part, primitive, service, offers, amount, valid_until, call_id, used_at FROM quotes WHERE id = $1
