import type { Answer } from './answer.ts';
import { LISTEN_MS } from './listen.ts';
import { errorText, resultText } from './message.ts';
import { ERROR, META } from './revisions.ts';
import type { StandaloneRun } from './standalone.ts';
import { createTally } from './tally.ts';

/** `subscriptions/listen` at single services, within bounds. */
export interface BoundedListens {
  /** Every other method passes. */
  readonly run: StandaloneRun;
  /** Streams that are open. */
  readonly count: number;
  /** Ends all streams, as the gateway stops: their clients come back to another one. */
  drain(): void;
}

export interface BoundedListensOptions {
  readonly toService: StandaloneRun;
  /** Streams of one account: each holds one of the connections to its server that others' calls need. */
  readonly max: number;
  readonly lastsMs?: number;
}

/** A stream is ended in good order before the clock of its call would end it as a provider that is too slow. */
export function createBoundedListens({ toService, max, lastsMs = LISTEN_MS }: BoundedListensOptions): BoundedListens {
  const ofAccount = createTally();
  const open = new Set<AbortController>();
  let draining = false;

  const run: StandaloneRun = async (service, request, knock, answer, toClient) => {
    const { id, idText, method } = request.message;
    if (method !== 'subscriptions/listen') return toService(service, request, knock, answer, toClient);
    const { account } = knock.caller;
    if (draining || ofAccount.of(account) >= max) {
      const message = draining ? 'The gateway is shutting down' : `This account listens on ${max} streams, which is as many as it may`;
      return answer.end(errorText(idText, { code: ERROR.server, message }), draining ? 503 : 429);
    }
    ofAccount.add(account, 1);
    const stop = new AbortController();
    open.add(stop);
    const timer = setTimeout(() => stop.abort(), lastsMs);
    const over: Answer = {
      events: (bytes) => answer.events(bytes),
      end: (...last) => answer.end(...last),
      close() {
        if (!stop.signal.aborted) return answer.close();
        answer.end(resultText(idText, JSON.stringify({ resultType: 'complete', _meta: { [META.subscriptionId]: id } })), 200);
      },
    };
    try {
      await toService(service, request, { ...knock, gone: AbortSignal.any([knock.gone, stop.signal]) }, over, toClient);
    } finally {
      clearTimeout(timer);
      open.delete(stop);
      ofAccount.add(account, -1);
    }
  };

  return {
    run,
    get count() {
      return open.size;
    },
    drain() {
      draining = true;
      for (const stop of open) stop.abort();
    },
  };
}
