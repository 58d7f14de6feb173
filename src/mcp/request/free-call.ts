import { setTimeout as sleep } from 'node:timers/promises';
import type { CancelSignal } from '#billing/amounts';
import { type Caller, OWN_ACCOUNT } from '#accounts';
import { endOnly, runFree, type FreeCall, type Pipeline, type Send } from '#call';
import { type Offer, pinned } from '#catalog';
import { freeEnd } from './ending.ts';
import type { McpEnd, McpResponse } from './mcp-request.ts';

/**
 * A call that MCP's method table makes free and that is not itself a client's request: opening or ending a session,
 * listening.
 */
export type McpFreeCall = Omit<FreeCall<McpResponse | null, Uint8Array>, 'primitive'>;

/** Runs a free call. Resolves to the response that its attempt ends with; null without one. */
export function runFreeCall(
  pipeline: Pick<Pipeline, 'prepare' | 'run'>,
  call: McpFreeCall,
  gone: CancelSignal,
  onEvents?: (bytes: Uint8Array) => Promise<void>,
): Promise<McpResponse | null> {
  return runFree(pipeline, { primitive: 'tool', ...call }, gone, onEvents);
}

/** The caller of the gateway's own requests. They are charged to no customer. */
export const OURSELVES: Caller = { account: OWN_ACCOUNT, key: null, wallet: null };

const FREE_REQUEST_MS = 5_000;

/**
 * Makes a free call of an account at one offer. Nobody waits for the call, and it ends within seconds. Rejects if the
 * provider cannot be reached.
 */
export type FreeRequest = (
  at: { readonly account: string; readonly offer: Offer },
  method: string,
  messages: (send: Send) => Promise<void>,
) => Promise<void>;

/**
 * Makes free calls that nobody waits for, on behalf of accounts that are not connected. A server that does not answer
 * in time is left alone, and does not count as broken.
 */
export function createFreeRequest(pipeline: Pick<Pipeline, 'prepare' | 'run'>): FreeRequest {
  return async ({ account, offer }, method, work) => {
    await runFreeCall(
      pipeline,
      {
        caller: { account, key: null, wallet: null },
        requestId: method,
        target: pinned(offer.id),
        method,
        timeoutMs: 2 * FREE_REQUEST_MS,
        startAttempt: (_offer, send) => endOnly(() => workInTime(work, send)),
      },
      new AbortController().signal,
    );
  };
}

async function workInTime(work: (send: Send) => Promise<unknown>, send: Send): Promise<McpEnd> {
  const running = work(send);
  const over = new AbortController();
  const late = sleep(FREE_REQUEST_MS, undefined, { signal: over.signal }).catch(() => {});
  try {
    await Promise.race([running, late]);
  } finally {
    over.abort();
    running.catch(() => {});
  }
  return freeEnd(null);
}
