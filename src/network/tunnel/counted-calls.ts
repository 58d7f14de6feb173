import type { ClientHttp2Session } from 'node:http2';
import type { CallSession } from './tunnels.ts';

/** Opens calls on the session of a tunnel, and counts the running ones. */
export class CountedCalls implements CallSession {
  readonly #session: ClientHttp2Session;
  #running = 0;
  #idle: (() => void) | null = null;

  constructor(session: ClientHttp2Session) {
    this.#session = session;
  }

  get closed(): boolean {
    return this.#session.closed;
  }

  get destroyed(): boolean {
    return this.#session.destroyed;
  }

  get running(): number {
    return this.#running;
  }

  request(...asked: Parameters<CallSession['request']>): ReturnType<CallSession['request']> {
    const call = this.#session.request(...asked);
    this.#running += 1;
    call.once('close', this.#ended);
    return call;
  }

  /** Calls `then` when no call runs any more, or at once if none runs. A later `then` replaces an earlier one. */
  whenIdle(then: () => void): void {
    if (this.#running === 0) return then();
    this.#idle = then;
  }

  readonly #ended = (): void => {
    this.#running -= 1;
    if (this.#running === 0) this.#idle?.();
  };
}
