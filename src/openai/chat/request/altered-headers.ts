export interface SentRequest {
  /** A provider was asked. Until then the call may still be refused for lack of money, so the reply must not begin. */
  readonly isRequested: boolean;
  /** Names of the request's fields that the provider did not get. */
  readonly dropped: readonly string[];
  /** The cap of the completion, if it is lower than the client's; else null. */
  readonly maxTokens: number | null;
  /** The provider that was asked last speaks the client's wire, so its reply is not chat. Default false. */
  readonly isNative?: boolean;
  /** The model that was asked last. Absent or null: none was, or what answers is no model. */
  readonly service?: string | null;
}

/**
 * Adds `x-tollgate-dropped` with the fields that the provider did not get, and `x-max-tokens` with the lowered cap,
 * if there are any. The names are percent-encoded, because the client chose them.
 */
export function addAlteredHeaders(
  headers: Record<string, string | number>,
  { dropped, maxTokens }: Pick<SentRequest, 'dropped' | 'maxTokens'>,
): void {
  if (dropped.length > 0) headers[DROPPED] = listOf(dropped.map(encoded));
  if (maxTokens !== null) headers['x-max-tokens'] = String(maxTokens);
}

const DROPPED = 'x-tollgate-dropped';
/** The most names that the header lists, and the most characters of one name. */
const NAMES_MAX = 32;
const NAME_MAX = 96;

const encoded = (name: string): string => encodeURIComponent(name.slice(0, NAME_MAX).toWellFormed());

const listOf = (names: readonly string[]): string =>
  (names.length > NAMES_MAX ? [...names.slice(0, NAMES_MAX), '...'] : names).join(', ');

export type ReplyHeaders = Readonly<Record<string, string | number>>;

/**
 * Makes the headers of a reply from those of the chat reply. It adds whether the reply was translated, and which
 * fields were dropped. `nameOf` gives the name that the client wrote for a field of the chat request.
 */
export function createTranslatedHeaders(
  nameOf: (chatField: string) => string,
): (chat: ReplyHeaders, lost: readonly string[], isNative: boolean) => ReplyHeaders {
  return (chat, lost, isNative) => {
    if (isNative) return { ...chat, 'x-tollgate-wire': 'native' };
    const { [DROPPED]: dropped, ...rest } = chat;
    const ofChat = typeof dropped === 'string' ? dropped.split(', ').map(nameOf) : [];
    const names = [...new Set([...lost.map(encoded), ...ofChat])];
    return { ...rest, 'x-tollgate-wire': 'translated', ...(names.length > 0 ? { [DROPPED]: listOf(names) } : {}) };
  };
}
