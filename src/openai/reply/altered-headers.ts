/** Names that the header lists, and what one may have of characters. */
const NAMES_MAX = 32;
const NAME_MAX = 96;

/** A request as a provider gets it, as far as it differs from the client's. */
export interface SentRequest {
  /**
   * A provider was asked. Until then the request may yet be refused for want of money, and nothing is begun that would
   * say otherwise.
   */
  readonly asked: boolean;
  /** Names of the request's fields that the provider did not get. */
  readonly dropped: readonly string[];
  /** The cap that the completion is kept to; null where it is what the client asked for. */
  readonly maxTokens: number | null;
  /** The provider that was asked last speaks the client's wire: its reply is not chat. Default false. */
  readonly isNative?: boolean;
}

/**
 * Adds the header that names the fields which the provider did not get, and the one that tells the cap which the
 * completion was kept to, each where there is something to tell. Names are written as in a URL: they are the client's.
 */
export function addAlteredHeaders(
  headers: Record<string, string | number>,
  { dropped, maxTokens }: Pick<SentRequest, 'dropped' | 'maxTokens'>,
): void {
  if (dropped.length > 0) {
    const shown = dropped.slice(0, NAMES_MAX).map((name) => encodeURIComponent(name.slice(0, NAME_MAX).toWellFormed()));
    if (dropped.length > NAMES_MAX) shown.push('...');
    headers['x-tollgate-dropped'] = shown.join(', ');
  }
  if (maxTokens !== null) headers['x-max-tokens'] = String(maxTokens);
}
