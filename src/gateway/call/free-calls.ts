import type { CancelSignal, EndFrame, Frame, ReplyPiece, Settlement } from '#billing/amounts';
import type { Primitive } from '#config';
import type { Caller } from '#accounts';
import type { ProviderAdapter, CallRequest, Call, Handler, CallObserver } from './call.ts';
import type { Pipeline } from './pipeline.ts';
import { NO_PREFERENCES } from './preferences.ts';

export interface FreeCall<R, D extends ReplyPiece> {
  readonly primitive: Primitive;
  readonly caller: Caller;
  readonly requestId: string;
  /** Name of a service, or the direct name of one offer. */
  readonly target: string;
  /** The method that is free by its protocol's table. */
  readonly method: string;
  readonly startAttempt: ProviderAdapter<R, D>['startAttempt'];
  readonly traceparent?: string | null;
  readonly stream?: boolean;
  readonly timeoutMs?: number;
  readonly facts?: CallRequest['facts'];
  readonly admitted?: CallRequest['admitted'];
}

/**
 * Runs a call that is free by its protocol's table. Resolves with its result; null if the call ended without
 * one.
 */
export async function runFree<R, D extends ReplyPiece = Uint8Array>(
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
    admitted,
  }: FreeCall<R, D>,
  gone: CancelSignal,
  onData: (data: D) => Promise<void> = async () => {},
): Promise<R | null> {
  const call = await pipeline.prepare<R, D>({
    primitive,
    caller,
    requestId,
    targets: [target],
    preferences: NO_PREFERENCES,
    stickyKey: null,
    images: 0,
    stream,
    adapter: { startAttempt },
    free: method,
    estimate: () => ({}),
    metadata: null,
    traceparent,
    wantsReceipt: false,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(facts === undefined ? {} : { facts }),
    admitted,
  });
  for await (const frame of pipeline.run(call, gone)) {
    if (frame.type === 'data') await onData(frame.data);
    if (frame.type === 'settled') return frame.result;
  }
  return null;
}

const NOTHING: Settlement = { charged: 0n, fee: 0n, drawn: 0n, shortfall: 0n };

/**
 * Replaces billing for a call that is free by its protocol's table. The call has no lock, is observed like any other
 * call, and its last frame is `settled` with nothing charged. If the client leaves, the call ends at once, because
 * nobody has to be paid for the rest.
 */
export function createFree(observer: CallObserver): (next: Handler) => Handler {
  return (next) => (call, signal) => runUnbilled(observer, next, call, signal);
}

async function* runUnbilled(
  observer: CallObserver,
  next: Handler,
  call: Call,
  signal: CancelSignal,
): AsyncGenerator<Frame, void, undefined> {
  if (call.free === null) throw new Error(`call ${call.id} is not free`);
  observer.started(call);
  let failure: unknown = null;
  let end: EndFrame | null = null;
  try {
    for await (const frame of next(call, signal)) {
      if (frame.type !== 'end') {
        yield frame;
        continue;
      }
      end = frame;
      yield {
        type: 'settled',
        settlement: NOTHING,
        usage: frame.usage,
        provider: frame.provider,
        providerName: frame.providerName,
        receipt: null,
        cut: frame.cut,
        result: frame.result,
      };
    }
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    observer.failed(call, failure, end);
  }
}
