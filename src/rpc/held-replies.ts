import { GatewayError } from '#wire';
import type { ReplyHold } from '#gateway';
import { toRpcFault } from './errors-rpc.ts';
import { errorOf, type Outcome, replyText } from './outcome.ts';

/** One entry to answer. */
export interface Asked {
  readonly idText: string;
  /** Its answer may have been paid for, so it is always sent. */
  readonly billed: boolean;
  run(): Promise<Outcome>;
}

/** The replies of one HTTP request, which stay in memory until the client has read them. */
export interface HeldReplies {
  /** The reply to one entry: its outcome, or an error if it was not run or if its reply is too large to send. */
  replyTo(asked: Asked): Promise<Outcome & { readonly bytes: Buffer }>;
}

/**
 * Limits the memory for the replies of one HTTP request to `bytesMax` together and to the room of `hold`. The answer to
 * a billed entry is always sent, so without room such an entry must not begin.
 */
export function createHeldReplies(hold: ReplyHold, bytesMax: number): HeldReplies {
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

/** Answers up to this size are always sent, because asking again would cost more. 50 of them are 200 KiB. */
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
    'Large replies that were not read yet use all memory for large replies. Read your replies, and retry in a moment',
    {
      retryAfterS: 2,
    },
  );
