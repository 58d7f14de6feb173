import { membersOf, type StoredReply } from '#gateway';
import { MCP_ERRORS } from './errors-mcp.ts';

/** Bytes of an answer. Every one stays for a day, and a tool that costs nothing could be called for the sake of that. */
const BYTES_MAX = { charged: 1024 * 1024, free: 64 * 1024 };

/** What a message says, without whom it says it to: `"result":…` or `"error":…`. Of one that is too long to be kept, that it was given. */
export function keptOutcome(text: string, status: number, charged: boolean): StoredReply {
  const said = [...membersOf(text)].filter(([key]) => key === 'result' || key === 'error');
  const body = said.map(([key, { start, end }]) => `"${key}":${text.slice(start, end)}`).join(',');
  const kept = Buffer.from(body);
  return kept.byteLength <= BYTES_MAX[charged ? 'charged' : 'free'] ? { status, headers: {}, body: kept } : TOO_LONG;
}

const TOO_LONG: StoredReply = {
  status: 200,
  headers: {},
  body: Buffer.from(
    `"error":${JSON.stringify({
      code: MCP_ERRORS.idempotency_conflict.code,
      message: 'The first request with this idempotency key was answered, and its answer was too long to be kept: use a new key to run it again',
    })}`,
  ),
};

/** An outcome that was kept, under the id of whoever asks again. */
export const withId = (idText: string, { body }: StoredReply): string => `{"jsonrpc":"2.0","id":${idText},${Buffer.from(body).toString()}}`;
