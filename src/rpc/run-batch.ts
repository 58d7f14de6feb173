import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Entry } from './entry.ts';
import type { HeldReplies } from './held-replies.ts';
import { errorOf, type Outcome } from './outcome.ts';

/** Maximum number of entries of one batch that run at the same time. */
export const CONCURRENCY = 8;

type Message = Extract<Entry, { kind: 'call' }>['message'];

interface BatchOptions {
  readonly kept: HeldReplies;
  readonly gone: AbortSignal;
  isBilled(method: string): boolean;
  run(message: Message, place: number): Promise<Outcome>;
}

/**
 * The replies to a batch, in the order of its entries. Notifications have no reply. When the client has left, no
 * further entry begins. Only one entry begins in each turn of the event loop, because answering one takes milliseconds
 * if there are many services.
 */
export async function runBatch(
  entries: readonly Entry[],
  { kept, gone, isBilled, run }: BatchOptions,
): Promise<Buffer[]> {
  const replies: (Buffer | null)[] = entries.map(() => null);
  let place = 0;
  let turn: Promise<unknown> = Promise.resolve();
  const work = async () => {
    while (place < entries.length) {
      const at = place++;
      const entry = entries[at]!;
      if (entry.kind === 'silent') continue;
      turn = turn.then(() => nextTurn());
      await turn;
      if (gone.aborted) return;
      const asked =
        entry.kind === 'refused'
          ? { idText: entry.idText, billed: false, run: async () => refused(entry) }
          : { idText: entry.message.idText, billed: isBilled(entry.message.method), run: () => run(entry.message, at) };
      replies[at] = (await kept.replyTo(asked)).bytes;
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, entries.length) }, work));
  return replies.filter((reply) => reply !== null);
}

/** The outcome of an entry that is not a valid request. */
export const refused = ({ error }: Extract<Entry, { kind: 'refused' }>): Outcome =>
  errorOf({ error, status: 200, headers: {} });
