import type { MatchLogic, ModelInfo } from '@pydantic/genai-prices';

/*
 * The list of prices matches names by their beginnings, so that it knows the versions of a model that are not in it
 * yet. A later model may begin in the same way: `claude-sonnet-5` would give its price to a `claude-sonnet-5-fast`. So
 * a match counts only if the rest of the name says no more than a version.
 */

/** A date, a number of a version, or a word for one. */
const PART =
  /latest|preview|exp|experimental|\d{3,8}|\d{4}-\d{2}-\d{2}|\d{2}-\d{2}(?:-\d{4})?|v\d{1,2}(?::\d{1,2})?|\d{1,2}k/
    .source;
/** Such parts. All but the first have a separator before them, so that a long name is read in one way only. */
const VERSION = new RegExp(`^(?:${PART})?(?:[-@.:](?:${PART}))*$`, 'i');
/** The beginning of a name at a provider that has models of others: `us.anthropic.`, `models/`. */
const BEFORE = /^(?:[a-z0-9-]+[./])*$/i;

/** Whether a name of the list means this model and no other: its own name, or a version of it. */
export function isCloseMatch(model: string, { id, match }: ModelInfo): boolean {
  const name = model.toLowerCase();
  if (name === id.toLowerCase()) return true;
  const { exact, near } = namesIn(match);
  if (exact.some((test) => test(name))) return true;
  return near.some((literal) => {
    const at = name.indexOf(literal);
    return at !== -1 && BEFORE.test(name.slice(0, at)) && VERSION.test(name.slice(endOf(name, at, literal)));
  });
}

/** The end of a part of a name, without the digits of a number that it cuts: `flash-0` of `flash-001`. */
function endOf(name: string, at: number, part: string): number {
  const end = at + part.length;
  const cut = /\d/.test(name[end] ?? '') ? (/\d+$/.exec(part)?.[0].length ?? 0) : 0;
  return end - cut;
}

interface Names {
  readonly exact: readonly ((name: string) => boolean)[];
  readonly near: readonly string[];
}

function namesIn(match: MatchLogic): Names {
  if ('or' in match || 'and' in match) {
    const all = ('or' in match ? match.or : match.and).map(namesIn);
    // Of a conjunction no part is enough by itself.
    return { exact: 'and' in match ? [] : all.flatMap(({ exact }) => exact), near: all.flatMap(({ near }) => near) };
  }
  if ('equals' in match) return { exact: [(name) => name === match.equals.toLowerCase()], near: [] };
  if ('regex' in match) {
    const pattern = new RegExp(match.regex);
    return {
      exact: match.regex.startsWith('^') && match.regex.endsWith('$') ? [(name) => pattern.test(name)] : [],
      near: [],
    };
  }
  const literal = 'starts_with' in match ? match.starts_with : 'ends_with' in match ? match.ends_with : match.contains;
  return { exact: [], near: [literal.toLowerCase()] };
}
