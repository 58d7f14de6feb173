import { GatewayError } from '#wire';
import type { ReplyHold } from '#gateway';
import { toRpcFault } from './errors-rpc.ts';
import { errorOf, type Outcome, replyText } from './outcome.ts';

/** One entry that is to be answered. */
export interface Asked {
  readonly idText: string;
  /** Its answer may have been paid for, so that it is never left out. */
  readonly billed: boolean;
  run(): Promise<Outcome>;
}

/** The replies that one HTTP request keeps until its client has taken them. */
export interface KeptReplies {
  /** The reply to one entry: what running it brought, or why it was not run, or why what it brought is not told. */
  replyTo(asked: Asked): Promise<Outcome & { readonly bytes: Buffer }>;
}

/**
 * Bounds the replies of one HTTP request: `bytesMax` together, and all that `hold` has room for. The answer to a
 * billed entry is always told: where there is no room for it, it must not be begun.
 */
export function createKeptReplies(hold: ReplyHold, bytesMax: number): KeptReplies {
  let kept = 0;
  let full = false;

  const told = (idText: string, outcome: Outcome) => ({ ...outcome, bytes: Buffer.from(replyText(idText, outcome)) });
  const keep = <R extends { readonly bytes: Buffer }>(reply: R): R => {
    kept += reply.bytes.byteLength;
    hold.mustKeep(kept);
    return reply;
  };
  return {
    async replyTo({ idText, billed, run }) {
      const refuse = (error: GatewayError) => keep(told(idText, errorOf(toRpcFault(error))));
      if (full || kept >= bytesMax) return refuse(notRun());
      if (billed && hold.shareIsFull()) return refuse(noRoom());
      const reply = told(idText, await run());
      if (!billed && reply.bytes.byteLength > ALWAYS_TOLD_BYTES) {
        if (kept + reply.bytes.byteLength > bytesMax) {
          full = true;
          return refuse(tooLarge());
        }
        if (!hold.fits(kept + reply.bytes.byteLength)) return refuse(noRoom());
      }
      return keep(reply);
    },
  };
}

/** Errors and small answers are worth less than the trouble to ask again. 50 of them are 200 KiB. */
const ALWAYS_TOLD_BYTES = 4 * 1024;

const notRun = () =>
  new GatewayError(
    'payload_too_large',
    'This entry was not run: the replies to the entries before it are already very large. Send it in another batch',
  );

const tooLarge = () =>
  new GatewayError(
    'payload_too_large',
    'The reply to this entry is too large for a batch: send the entry alone, as one request without an array',
  );

const noRoom = () =>
  new GatewayError(
    'service_unavailable',
    'Large replies that were not fetched yet take all the memory for them: read your replies, and retry in a moment',
    {
      retryAfterS: 2,
    },
  );
