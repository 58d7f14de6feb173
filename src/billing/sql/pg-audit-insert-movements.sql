-- Inserts the movements of every record, except unreadable records ($1, $2). A movement may lack its last fields, which
-- become 0 or NULL.
INSERT INTO group_movements (chain, batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at)
SELECT chain, n, position, fields[1], fields[2], fields[3], fields[4], CAST(fields[5] AS BIGINT), CAST(COALESCE(fields[6], '0') AS BIGINT),
  CAST(COALESCE(fields[7], '0') AS BIGINT), CAST(COALESCE(fields[8], '0') AS BIGINT), fields[9], at
FROM (
  SELECT b.chain, b.n, b.at, r.position - 1 AS position, ARRAY(SELECT json_array_elements_text(r.fields)) AS fields
  FROM journal_batches AS b CROSS JOIN LATERAL json_array_elements(CAST(b.movements AS JSON)) WITH ORDINALITY AS r (fields, position)
  WHERE NOT EXISTS (SELECT 1 FROM unnest($1::text[], $2::bigint[]) AS unreadable (chain, n) WHERE unreadable.chain = b.chain AND unreadable.n = b.n)
) AS told
