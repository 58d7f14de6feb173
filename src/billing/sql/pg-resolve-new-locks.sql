-- Resolves locks that the same group has made.
UPDATE locks SET state = r.state, price = r.price, provider = r.provider, charged = r.charged, fee = r.fee, fee_bps = r.fee_bps, drawn = r.drawn,
  shortfall = r.shortfall, resolved_at = $12, usage = r.usage, detail = r.detail
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
  (string_to_array($10::text, chr(31), chr(30)))[2:], (string_to_array($11::text, chr(31), chr(30)))[2:])
  AS r (id, state, price, provider, charged, fee, fee_bps, drawn, shortfall, usage, detail)
WHERE locks.id = r.id
