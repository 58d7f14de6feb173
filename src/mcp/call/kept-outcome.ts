import { editText, type MarkedText, membersOf, piecesOfText, wholePiece } from '#wire';
import { type GivenReply, KEPT_BYTES_MAX, type StoredReply } from '#gateway';
import type { Around } from '#tasks';

/** A response without its id, `"result":…` or `"error":…`, in pieces. */
export const outcomePieces = (text: string | MarkedText): readonly Uint8Array[] =>
  piecesOfText(editText(text, outcomeOf));

/** An outcome as it is kept in the database. */
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

/** The text around a kept outcome in the answer to a request with this id. */
export const aroundOutcome = (idText: string): Around => ({
  before: `{"jsonrpc":"2.0","id":${idText},`,
  after: '}',
  headers: REPLAYED,
});

/** A kept outcome, under the id of the repeated request. */
export function withId(idText: string, { body }: StoredReply): string {
  const { before, after } = aroundOutcome(idText);
  return before + Buffer.from(body).toString() + after;
}
