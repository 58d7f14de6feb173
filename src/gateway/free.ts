import type { EndFrame, Frame, Leaving, Settlement } from '#billing';
import type { Call, Handler } from './call.ts';
import type { CallObserver } from './observer.ts';

const NOTHING: Settlement = { charged: 0n, fee: 0n, drawn: 0n, shortfall: 0n };

/**
 * Takes the place of billing for a call that is free by its protocol's table. The call holds no lock, is
 * observed as any other, and its last frame is `settled` with nothing charged. A client that leaves ends it at
 * once, as nobody is owed for what is still to come.
 */
export function createFree(observer: Pick<CallObserver, 'started' | 'failed'>): (next: Handler) => Handler {
  return (next) => (call, signal) => run(observer, next, call, signal);
}

async function* run(
  observer: Pick<CallObserver, 'started' | 'failed'>,
  next: Handler,
  call: Call,
  signal: Leaving,
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
