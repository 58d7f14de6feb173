import { UpstreamFailure } from '#wire';
import { createHeldMemory } from '#http';

/** Limits the memory for replies that the process holds until they are complete. */
export interface ReplyMemory {
  /**
   * Begins to count one reply to an account. `free`: the call costs nothing. `provider`: the provider of the reply;
   * null if the reply comes from several.
   */
  open(account: string, free: boolean, provider: string | null): ReplyHold;
}

/** The memory of one reply. A wait for room that takes too long rejects with UpstreamFailure (`tooLarge`, `unheld`). */
export type ReplyHold = ReturnType<ReturnType<typeof createHeldMemory<'account' | 'provider'>>['open']>;

interface ReplyMemoryOptions {
  readonly repliesBytesMax: number;
  readonly replyBytesMax: number;
  /** Longest wait for room; default 10 s. */
  readonly waitMs?: number;
}

/**
 * Replies up to this size are not counted. Nearly all replies are smaller, and even thousands of them need little
 * memory.
 */
const UNCOUNTED_BYTES = 64 * 1024;
const WAIT_MS = 10_000;

/** Accounts cost nothing to make, so those that call for nothing count together besides. */
const FREE = 'free ';
const accountLevels = (party: string): readonly string[] => (party.startsWith(FREE) ? [FREE, party] : [party]);

/**
 * A growing reply reserves up to twice its size each time. If one of its counts has no room, the reply waits, and its
 * connection is not read meanwhile.
 */
export function createReplyMemory({
  repliesBytesMax,
  replyBytesMax,
  waitMs = WAIT_MS,
}: ReplyMemoryOptions): ReplyMemory {
  const memory = createHeldMemory({
    bytesMax: repliesBytesMax,
    oneBytesMax: replyBytesMax,
    uncountedBytes: UNCOUNTED_BYTES,
    kinds: { account: accountLevels, provider: null },
    waitMs,
    full,
  });
  return {
    open: (account, free, provider) => memory.open({ account: free ? `${FREE}${account}` : account, provider }),
  };
}

/** The provider has made the reply, and it is given up as one that is too large is. */
const full = () =>
  new UpstreamFailure('the memory of this gateway for large replies is full', {
    retryable: false,
    attributedTo: 'nobody',
    tooLarge: true,
    unheld: true,
    retryAfterS: 2,
  });
