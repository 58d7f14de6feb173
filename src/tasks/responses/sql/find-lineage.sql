-- A response and those that its conversation continues, the first one last.
WITH RECURSIVE lineage (id, place) AS (
  SELECT id, 0 FROM kept_responses WHERE id = $1 AND account = $2 AND expires_at > $3
  UNION ALL
  SELECT earlier.id, lineage.place + 1
  FROM lineage JOIN kept_responses AS later ON later.id = lineage.id
  JOIN kept_responses AS earlier ON earlier.id = later.previous
  WHERE earlier.account = $2 AND earlier.expires_at > $3 AND lineage.place < $4
)
SELECT kept_responses.id, account, part, service, previous, length(input) AS input_bytes, length(response) AS response_bytes, created_at, expires_at, run, run_until
FROM lineage JOIN kept_responses ON kept_responses.id = lineage.id ORDER BY place
