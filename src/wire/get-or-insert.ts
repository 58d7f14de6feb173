/**
 * Returns the value of a key. If the map has none, `make` makes it, and the map keeps it. The method of the same name
 * that Node 26 has is missing in Node 24.
 */
export function getOrInsert<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}
