import { setTimeout as sleep } from 'node:timers/promises';
import { NO_PREFERENCES, type Caller, type Conversation, type Pipeline } from '#gateway';
import type { Reach } from './session-ends.ts';
import type { McpTail } from './turn.ts';
import { pinned } from './pinned.ts';

export interface FreeCall {
  readonly caller: Caller;
  readonly requestId: string;
  /** Name of a service, or the direct form of one offer. */
  readonly target: string;
  /** Why it costs nothing. */
  readonly method: string;
  readonly converse: Conversation['converse'];
  readonly timeoutMs?: number;
}

/** Runs a call that is free by MCP's table and is no request of its client: opening and ending sessions, listening. Resolves with its tail. */
export async function runFreeCall(
  pipeline: Pick<Pipeline, 'prepare' | 'run'>,
  { caller, requestId, target, method, converse, timeoutMs }: FreeCall,
  gone: AbortSignal,
  onEvents: (bytes: Uint8Array) => Promise<void> = async () => {},
): Promise<McpTail | null> {
  const call = await pipeline.prepare({
    primitive: 'tool',
    caller,
    requestId,
    targets: [target],
    preferences: NO_PREFERENCES,
    stickyKey: null,
    images: 0,
    stream: false,
    exchange: { converse },
    free: method,
    estimate: () => ({}),
    metadata: null,
    traceparent: null,
    wantsReceipt: false,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
  for await (const frame of pipeline.run(call, gone)) {
    if (frame.type === 'data') await onEvents(frame.bytes);
    if (frame.type === 'settled') return frame.tail as McpTail | null;
  }
  return null;
}

const REACH_MS = 5_000;

/** Free calls that nobody waits for, of accounts that are not there. A server that does not answer in time is left alone, and not taken for broken. */
export function createReach(pipeline: Pick<Pipeline, 'prepare' | 'run'>): Reach {
  return async ({ account, offer }, method, talk) => {
    await runFreeCall(
      pipeline,
      {
        caller: { account, key: null, wallet: null },
        requestId: method,
        target: pinned(offer.id),
        method,
        timeoutMs: 2 * REACH_MS,
        // oxlint-disable-next-line require-yield -- there is nobody to give anything to
        async *converse(_offer, send) {
          const talking = talk(send);
          const over = new AbortController();
          const late = sleep(REACH_MS, undefined, { signal: over.signal }).catch(() => {});
          try {
            await Promise.race([talking, late]);
          } finally {
            over.abort();
            talking.catch(() => {});
          }
          return { usage: null, outcome: 'free', estimated: false, finishReason: null, flags: [], tail: null };
        },
      },
      new AbortController().signal,
    );
  };
}
