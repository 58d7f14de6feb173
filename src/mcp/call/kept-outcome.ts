import { bytesOfText, editText, type MarkedText, membersOf } from '#wire';
import { type GivenReply, KEPT_BYTES_MAX, type StoredReply } from '#gateway';

/** A response without its id: `"result":…` or `"error":…`. */
export function keptOutcome(text: string | MarkedText, status: number): GivenReply {
  return { status, headers: {}, body: bytesOfText(editText(text, outcomeOf), KEPT_BYTES_MAX.charged) };
}

const outcomeOf = (text: string): string =>
  [...membersOf(text)]
    .filter(([key]) => key === 'result' || key === 'error')
    .map(([key, { start, end }]) => `"${key}":${text.slice(start, end)}`)
    .join(',');

/** A kept outcome, under the id of the repeated request. */
export const withId = (idText: string, { body }: StoredReply): string =>
  `{"jsonrpc":"2.0","id":${idText},${Buffer.from(body).toString()}}`;
