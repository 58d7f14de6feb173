import { errorText, type RequestMessage, resultText } from '#wire';
import type { McpTail } from '../request/mcp-request.ts';
import { ERROR } from '../wire/revisions.ts';

/** The outcome of `initialize`. */
export interface Opened<S = { readonly id: string }> {
  /** null if `initialize` was refused. */
  readonly session: S | null;
  readonly tail: McpTail;
}

/** Longest `initialize` that is stored. */
const INITIALIZE_CHARS_MAX = 64 * 1024;

/** Refuses an `initialize` that is too long to be stored; null for others. */
export function refuseTooLong({ idText, text }: RequestMessage): Opened<never> | null {
  if (text.length <= INITIALIZE_CHARS_MAX) return null;
  const message = `initialize is longer than ${INITIALIZE_CHARS_MAX} characters`;
  return refused(idText, 400, ERROR.invalidRequest, message);
}

/** Refuses a session because the account may not open another. */
export const refuseTooMany = ({ idText }: RequestMessage, max: number): Opened<never> =>
  refused(
    idText,
    429,
    ERROR.server,
    `This account has ${max} sessions, and all of them are in use. End one with DELETE first`,
  );

/** A session for which the gateway itself answers, with `result` (JSON text). */
export const openedWith = <S>(session: S, { idText }: RequestMessage, result: string): Opened<S> => ({
  session,
  tail: { text: resultText(idText, result), status: 200 },
});

const refused = (idText: string, status: number, code: number, message: string): Opened<never> => ({
  session: null,
  tail: { status, text: errorText(idText, { code, message }) },
});
