/** The most names that the header lists, and the most characters of one name. */
const NAMES_MAX = 32;
const NAME_MAX = 96;

/** The differences between the request that a provider gets and the client's request. */
export interface SentRequest {
  /** A provider was asked. Until then the call may still be refused for lack of money, so the reply must not begin. */
  readonly asked: boolean;
  /** Names of the request's fields that the provider did not get. */
  readonly dropped: readonly string[];
  /** The cap of the completion, if it is lower than the client's; else null. */
  readonly maxTokens: number | null;
  /** The provider that was asked last speaks the client's wire, so its reply is not chat. Default false. */
  readonly isNative?: boolean;
}

/**
 * Adds `x-tollgate-dropped` with the fields that the provider did not get, and `x-max-tokens` with the lowered cap,
 * if there are any. The names are percent-encoded, because the client chose them.
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
