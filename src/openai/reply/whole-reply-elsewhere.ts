import { malformed, readElsewhere, UpstreamFailure } from '#wire/replies';
import type { ReplyEnd } from '#gateway';
import type { ReplyContext } from './chat-end.ts';
import type { Collector } from './chat-reply-collector.ts';
import type { ReplyForm } from './whole-reply.ts';
import type { ReadReply } from './whole-reply-worker.ts';

/** In the worst case, a larger reply would block the event loop for more than a few milliseconds. */
const HERE_BYTES_MAX = 64 * 1024;

const WORKER = new URL('./whole-reply-worker.ts', import.meta.url);

/**
 * Reads a large reply in another thread. The result has the reply as text instead of an object. Returns null for a
 * reply that is small, or wanted as an object.
 */
export function endInWorker(context: ReplyContext, collected: Collector, form: ReplyForm): Promise<ReplyEnd> | null {
  const { readFor } = context;
  if (readFor === undefined || collected.bytes <= HERE_BYTES_MAX) return null;
  return read(readFor, context, collected, form);
}

async function read(account: string, context: ReplyContext, collected: Collector, form: ReplyForm): Promise<ReplyEnd> {
  const bytes = collected.giveAway();
  let answer: ReadReply;
  try {
    answer = (await readElsewhere(account, WORKER, { context, bytes, form }, [bytes])) as ReadReply;
  } catch (error) {
    throw malformed('reading its reply needs more memory than one reply may use', error);
  }
  if ('end' in answer) return answer.end;
  if (answer.bytes) collected.takeBack(answer.bytes);
  const { message, words, ...rest } = answer.failure;
  throw new UpstreamFailure(message, { ...rest, cause: words === null ? undefined : new Error(words) });
}
