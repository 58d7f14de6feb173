import { toRpcFault } from './errors-rpc.ts';
import { GatewayError } from '#gateway';
import type { Entry } from './entry.ts';
import { errorOf, replyText, type Outcome } from './outcome.ts';

/** Entries of one batch that run at once. */
export const CONCURRENCY = 8;

export interface BatchOptions {
  /** Once the replies have so many characters together, no further entry is begun. */
  readonly replyCharsMax: number;
  readonly gone: AbortSignal;
  run(message: Extract<Entry, { kind: 'call' }>['message'], place: number): Promise<Outcome>;
}

/** The replies to a batch, in the order of its entries; notifications have none. Entries that were not begun when the client left are not run. */
export async function runBatch(entries: readonly Entry[], { replyCharsMax, gone, run }: BatchOptions): Promise<string[]> {
  const replies: (string | null)[] = entries.map(() => null);
  let place = 0;
  let chars = 0;
  const work = async () => {
    while (place < entries.length && !gone.aborted) {
      const at = place++;
      const entry = entries[at]!;
      if (entry.kind === 'silent') continue;
      const [idText, outcome] = entry.kind === 'refused' ? [entry.idText, refused(entry)] : [entry.message.idText, await outcomeOf(entry, at)];
      replies[at] = replyText(idText, outcome);
      chars += replies[at].length;
    }
  };
  const outcomeOf = async ({ message }: Extract<Entry, { kind: 'call' }>, at: number): Promise<Outcome> =>
    chars < replyCharsMax ? run(message, at) : errorOf(toRpcFault(tooLarge()));
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, entries.length) }, work));
  return replies.filter((reply) => reply !== null);
}

/** The outcome of an entry that is no request. */
export const refused = ({ error }: Extract<Entry, { kind: 'refused' }>): Outcome => errorOf({ error, status: 200, headers: {} });

const tooLarge = () =>
  new GatewayError(
    'payload_too_large',
    'This entry was not run: the replies to the entries before it are already very large. Send it in another batch',
  );
