import type { CancelSignal } from '#billing';
import type { Primitive } from '#config';
import type { Caller, ProviderAdapter } from './call.ts';
import type { CallRequest } from './call-request.ts';
import type { Pipeline } from './pipeline.ts';
import { NO_PREFERENCES } from './routing/preferences.ts';

export interface FreeCall {
  readonly primitive: Primitive;
  readonly caller: Caller;
  readonly requestId: string;
  /** Name of a service, or the direct name of one offer. */
  readonly target: string;
  /** The method that is free by its protocol's table. */
  readonly method: string;
  readonly startAttempt: ProviderAdapter['startAttempt'];
  readonly traceparent?: string | null;
  readonly stream?: boolean;
  readonly timeoutMs?: number;
  readonly facts?: CallRequest['facts'];
}

/**
 * Runs a call that is free by its protocol's table. Resolves with the tail of its end; null if the call ended without
 * one.
 */
export async function runFree(
  pipeline: Pick<Pipeline, 'prepare' | 'run'>,
  {
    primitive,
    caller,
    requestId,
    target,
    method,
    startAttempt,
    traceparent = null,
    stream = false,
    timeoutMs,
    facts,
  }: FreeCall,
  gone: CancelSignal,
  onData: (bytes: Uint8Array) => Promise<void> = async () => {},
): Promise<unknown> {
  const call = await pipeline.prepare({
    primitive,
    caller,
    requestId,
    targets: [target],
    preferences: NO_PREFERENCES,
    stickyKey: null,
    images: 0,
    stream,
    exchange: { startAttempt },
    free: method,
    estimate: () => ({}),
    metadata: null,
    traceparent,
    wantsReceipt: false,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(facts === undefined ? {} : { facts }),
  });
  for await (const frame of pipeline.run(call, gone)) {
    if (frame.type === 'data') await onData(frame.bytes);
    if (frame.type === 'settled') return frame.tail;
  }
  return null;
}
