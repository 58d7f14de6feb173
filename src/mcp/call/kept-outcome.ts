import { editText, type MarkedText, membersOf, piecesOfText, wholePiece } from '#wire';
import { type GivenReply, KEPT_BYTES_MAX, type StoredReply } from '#gateway';
import type { Around } from '#tasks';

/** A response without its id, as pieces: `"result":…` or `"error":…`. */
export const outcomePieces = (text: string | MarkedText): readonly Uint8Array[] =>
  piecesOfText(editText(text, outcomeOf));

/** An outcome in the form that the database stores. */
export const keptOutcome = (pieces: readonly Uint8Array[], status: number): GivenReply => ({
  status,
  headers: {},
  body: wholePiece(pieces, KEPT_BYTES_MAX.charged),
});

const outcomeOf = (text: string): string =>
  [...membersOf(text)]
    .filter(([key]) => key === 'result' || key === 'error')
    .map(([key, { start, end }]) => `"${key}":${text.slice(start, end)}`)
    .join(',');

export const REPLAYED = { 'idempotent-replayed': 'true' } as const;

/** The text around a stored outcome, in the answer to a request with this id. */
export const aroundOutcome = (idText: string): Around => ({
  before: `{"jsonrpc":"2.0","id":${idText},`,
  after: '}',
  headers: REPLAYED,
});

/** A stored outcome as the response to the repeated request with this id. */
export function withId(idText: string, { body }: StoredReply): string {
  const { before, after } = aroundOutcome(idText);
  return before + Buffer.from(body).toString() + after;
}
