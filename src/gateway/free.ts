import type { EndFrame, Frame, CancelSignal, Settlement } from '#billing';
import type { Call, Handler } from './call.ts';
import type { CallObserver } from './observer.ts';

const NOTHING: Settlement = { charged: 0n, fee: 0n, drawn: 0n, shortfall: 0n };

/**
 * Replaces billing for a call that is free by its protocol's table. The call has no lock, is observed like any other
 * call, and its last frame is `settled` with nothing charged. If the client leaves, the call ends at once, because
 * nobody has to be paid for the rest.
 */
export function createFree(observer: Pick<CallObserver, 'started' | 'failed'>): (next: Handler) => Handler {
  return (next) => (call, signal) => run(observer, next, call, signal);
}

async function* run(
  observer: Pick<CallObserver, 'started' | 'failed'>,
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
        tail: frame.tail,
      };
    }
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    observer.failed(call, failure, end);
  }
}
