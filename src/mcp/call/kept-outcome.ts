import { membersOf } from '#wire';
import type { StoredReply } from '#gateway';

/** A response without its id: `"result":…` or `"error":…`. */
export function keptOutcome(text: string, status: number): StoredReply {
  const said = [...membersOf(text)].filter(([key]) => key === 'result' || key === 'error');
  const body = said.map(([key, { start, end }]) => `"${key}":${text.slice(start, end)}`).join(',');
  return { status, headers: {}, body: Buffer.from(body) };
}

/** A kept outcome, under the id of the repeated request. */
export const withId = (idText: string, { body }: StoredReply): string =>
  `{"jsonrpc":"2.0","id":${idText},${Buffer.from(body).toString()}}`;
