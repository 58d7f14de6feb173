import type { ReplyEnd } from './call.ts';

/**
 * A conversation that passes no bytes to the client, and has only an end. `talk` begins when the first result is asked
 * for. V8 keeps a call in memory until a full collection if the call makes its own generator function and runs it, so
 * such conversations share this one.
 */
// oxlint-disable-next-line require-yield -- the client gets no bytes
export async function* endOnly(talk: () => Promise<ReplyEnd>): AsyncGenerator<Uint8Array, ReplyEnd, undefined> {
  return await talk();
}
