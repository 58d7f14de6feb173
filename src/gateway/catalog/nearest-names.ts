/** The maximum number of names to compare. It bounds the cost of a client that sends many misspelt names. */
const COMPARED_MAX = 1_000;
const SHOWN = 3;
const LEAST = 0.3;
/** The lowest share of the best score. */
const LEAST_SHARE = 0.8;

/**
 * The names that are most similar to an unknown name, best first. Similarity is the share of common character pairs
 * (Dice coefficient).
 */
export function nearestNames(wanted: string, names: Iterable<string>): readonly string[] {
  const pairs = pairsOf(wanted.slice(0, 128));
  const scored: { readonly name: string; readonly score: number }[] = [];
  let compared = 0;
  for (const name of names) {
    if (++compared > COMPARED_MAX) break;
    const others = pairsOf(name);
    let shared = 0;
    for (const pair of others) if (pairs.has(pair)) shared++;
    const score = (2 * shared) / Math.max(1, pairs.size + others.size);
    if (score >= LEAST) scored.push({ name, score });
  }
  scored.sort((a, b) => b.score - a.score || (a.name < b.name ? -1 : 1));
  return scored
    .slice(0, SHOWN)
    .filter(({ score }) => score >= scored[0]!.score * LEAST_SHARE)
    .map(({ name }) => name);
}

/** The nearest names as a sentence for an error; empty if no name is near. */
export function nearestHint(wanted: string, names: Iterable<string>): string {
  const nearest = nearestNames(wanted, names);
  return nearest.length === 0 ? '' : `The nearest: ${nearest.join(', ')}`;
}

function pairsOf(text: string): ReadonlySet<string> {
  const lower = text.toLowerCase();
  const pairs = new Set<string>();
  for (let i = 1; i < lower.length; i++) pairs.add(lower.slice(i - 1, i + 1));
  return pairs;
}
