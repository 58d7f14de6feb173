import type { ReplyEnd } from './call.ts';

/**
 * A provider adapter that passes no bytes to the client, and has only an end. `work` begins when the first result is
 * asked for. Such adapters share this function, because a generator function of each call would keep the call in
 * memory until V8's next full collection (decision 91).
 */
// oxlint-disable-next-line require-yield -- the client gets no bytes
export async function* endOnly(work: () => Promise<ReplyEnd>): AsyncGenerator<Uint8Array, ReplyEnd, undefined> {
  return await work();
}
