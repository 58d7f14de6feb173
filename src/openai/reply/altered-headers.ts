/** Names that the header lists, and what one may have of characters. */
const NAMES_MAX = 32;
const NAME_MAX = 96;

/**
 * The header that names the fields of a request that its provider did not get; nothing where it got all. Names are
 * written as in a URL: they are the client's.
 */
export function droppedHeader({
  dropped,
}: {
  readonly dropped?: () => readonly string[];
}): Readonly<Record<string, string>> {
  const names = dropped?.() ?? [];
  if (names.length === 0) return {};
  const shown = names.slice(0, NAMES_MAX).map((name) => encodeURIComponent(name.slice(0, NAME_MAX).toWellFormed()));
  if (names.length > NAMES_MAX) shown.push('...');
  return { 'x-tollgate-dropped': shown.join(', ') };
}

/**
 * The header that tells the cap that a completion was kept to, where that is less than the request asked for;
 * nothing where it is not.
 */
export function maxTokensHeader({
  maxTokens,
}: {
  readonly maxTokens?: () => number | null;
}): Readonly<Record<string, string>> {
  const tokens = maxTokens?.() ?? null;
  return tokens === null ? {} : { 'x-max-tokens': String(tokens) };
}
