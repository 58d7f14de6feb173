SELECT c.version, n.id, n.url, n.beat FROM registry_clock c LEFT JOIN nodes n ON TRUE
