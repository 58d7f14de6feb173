import { randomBytes } from 'node:crypto';
import { connect } from 'node:http2';
import type { Socket } from 'node:net';
import bs58 from 'bs58';
import type { WebSocket } from 'ws';
import { RegistrationError } from '../registry/document.ts';
import { ConnectionSuperseded, type Connection, type Registry } from '../registry/registry.ts';
import type { AdmittedProvider } from './admit-provider.ts';
import { checkRegistration, type RegistrationRules } from './check-registration.ts';
import { openControl } from './control-stream.ts';
import { createFrameMeter, type FrameBudget } from './frame-meter.ts';
import { keepAlive } from './keep-alive.ts';
import { SESSION_OPTIONS, TUNNEL_WINDOW } from './session-options.ts';
import { createSocketStream } from './socket-stream.ts';
import type { CallSession, TunnelObserver } from './tunnels.ts';
import type { ProxyMessage } from './wire.ts';

export interface TunnelOptions {
  readonly socket: WebSocket;
  /** The socket below it. */
  readonly wire: Socket;
  readonly id: string;
  readonly admitted: AdmittedProvider;
  readonly registry: Pick<Registry, 'join' | 'register' | 'leave'>;
  readonly rules: RegistrationRules;
  readonly observer: TunnelObserver;
  readonly version: string;
  readonly silenceMs: number;
  readonly limits: TunnelLimits;
  /** Of all connections from its network. */
  readonly frames: FrameBudget;
  /**
   * Whether the key that the proxy dialled in with still opens the gateway; true where that cannot be told. Not
   * asked of a wallet.
   */
  readonly stillAdmitted: () => Promise<boolean>;
}

export interface TunnelLimits {
  /** Time for the proxy to open its side of the tunnel. */
  readonly handshakeMs: number;
  /** Time until its first registration is accepted. */
  readonly registerMs: number;
  /** Registrations at once, and the time in which one more may come. */
  readonly registrationBurst: number;
  readonly registrationIntervalMs: number;
  /** Time for running calls after the proxy asked for no more. */
  readonly drainMsMax: number;
}

/** One proxy's connection, from its upgrade to its end. */
export interface Tunnel {
  readonly connection: Connection;
  /** For calls; null before the first registration and once it is ending. */
  session(): CallSession | null;
  /** Calls that run. */
  streams(): number;
  /** A newer connection of the provider took over: nothing that still comes from this one reaches a call. */
  replaced(): void;
  /** Tells the proxy to dial elsewhere, ends when its running calls have, at the latest after `ms`. */
  drain(ms: number): void;
  /** Settles when its socket is closed. */
  readonly closed: Promise<void>;
}

/** Close codes of RFC 6455 and of the IANA registry. */
const CLOSE = { normal: 1000, goingAway: 1001, policyViolation: 1008, tryAgainLater: 1013 } as const;

const CHALLENGE_BYTES = 32;
/** Between looks at whether a provider's key is still good. */
const RECHECK_MS = 500;

/** Runs HTTP/2 over an accepted WebSocket, with the gateway as its client, and takes what the proxy registers. */
export function openTunnel(options: TunnelOptions): Tunnel {
  const { socket, wire, admitted, registry, observer, limits, silenceMs } = options;
  const connection: Connection = { id: options.id, provider: admitted.provider, account: admitted.account };
  const challenge = bs58.encode(randomBytes(CHALLENGE_BYTES));
  const closed = Promise.withResolvers<void>();
  const timers = new Set<NodeJS.Timeout>();
  const tooFast = createRate(limits);
  /** Until it is `serving` no call comes, from `draining` on no new one. */
  let state: 'open' | 'serving' | 'draining' | 'over' = 'open';
  let running = 0;
  let whenIdle: (() => void) | null = null;
  let askedToDrain = false;

  const stream = createSocketStream(socket, {
    meter: createFrameMeter(options.frames),
    wire,
    flooded: (why) => end(CLOSE.policyViolation, why),
  });
  const session = connect('http://tunnel', { createConnection: () => stream, ...SESSION_OPTIONS });
  session.setLocalWindowSize(TUNNEL_WINDOW);
  session.on('error', (error) => end(CLOSE.policyViolation, `the tunnel broke: ${error.message}`));
  session.on('goaway', stopTakingCalls);
  session.on('close', () => end(CLOSE.normal, 'the proxy closed the connection'));
  socket.on('close', () => {
    end(CLOSE.normal, 'the connection was lost');
    closed.resolve();
  });

  const stopPinging = keepAlive({
    session,
    wire,
    silenceMs,
    silent() {
      // Nobody is there to close it with.
      socket.terminate();
      end(CLOSE.policyViolation, `the proxy was silent for ${silenceMs / 1000} s`);
    },
  });
  // A key is revoked everywhere within a second, and what it opened with it. A wallet's sign-in was for this
  // connection.
  if (admitted.byKey) every(RECHECK_MS, recheckKey);

  const opening = later(limits.handshakeMs, () =>
    end(CLOSE.policyViolation, 'the proxy did not open its side of the tunnel in time'),
  );
  const control = openControl(session, {
    opened() {
      clearTimeout(opening);
      control.say({
        type: 'welcome',
        provider: connection.provider,
        account: connection.account,
        challenge,
        version: options.version,
      });
      later(limits.registerMs, () => {
        if (state === 'open') end(CLOSE.policyViolation, 'the proxy registered nothing');
      });
    },
    message(message) {
      if (message.type === 'register') return register(message);
      // Once: each is a line in the log.
      if (!askedToDrain) observer.draining?.(connection);
      askedToDrain = true;
      stopTakingCalls();
    },
    ended(why) {
      if (state !== 'draining') end(CLOSE.policyViolation, why);
      else endWhenIdle(CLOSE.normal, 'the proxy has finished');
    },
  });

  const calls: CallSession = {
    get closed() {
      return session.closed;
    },
    get destroyed() {
      return session.destroyed;
    },
    request(headers, requestOptions) {
      const call = session.request(headers, requestOptions);
      running += 1;
      call.once('close', callEnded);
      return call;
    },
  };

  function callEnded(): void {
    running -= 1;
    if (running === 0) whenIdle?.();
  }

  async function register(message: Extract<ProxyMessage, { type: 'register' }>): Promise<void> {
    if (state !== 'open' && state !== 'serving') return;
    if (tooFast()) return end(CLOSE.policyViolation, 'registrations come too fast');
    let first = false;
    try {
      const services = await checkRegistration(message, admitted, challenge, options.rules);
      if (state === 'open') {
        // Calls may wait for it: they come as soon as the registry knows of it.
        state = 'serving';
        first = true;
        await registry.join(connection, services[0]?.providerName);
      }
      const { revision } = await registry.register(connection, services);
      if (state !== 'serving') return;
      observer.registered?.(connection, { services: services.length, revision });
      control.say({ type: 'registered', revision, services: services.map(({ name }) => name) });
    } catch (error) {
      if (error instanceof RegistrationError) {
        const { message: why, problems } = error;
        observer.refused?.(connection, why, problems);
        control.sayLast({ type: 'refused', message: why, problems }, () => {
          // What it is there for is not to be had, and it may have taken its provider's place for nothing.
          if (first) end(CLOSE.policyViolation, 'its first registration was refused');
        });
      } else if (state === 'open' || state === 'serving') {
        if (error instanceof ConnectionSuperseded) return replaced();
        observer.failed?.(connection, error);
        end(CLOSE.tryAgainLater, 'the registry cannot be reached at the moment');
      }
    }
  }

  function stopTakingCalls(): void {
    if (state !== 'open' && state !== 'serving') return;
    leave();
    state = 'draining';
    later(limits.drainMsMax, () => end(CLOSE.normal, 'running calls did not end in time'));
  }

  function leave(): void {
    if (state === 'serving') void registry.leave(connection);
  }

  function endWhenIdle(code: number, why: string): void {
    if (running === 0) return end(code, why);
    whenIdle = () => end(code, why);
  }

  function replaced(): void {
    if (state === 'over') return;
    stream.deafen();
    stopTakingCalls();
    observer.replaced?.(connection);
    control.sayLast({ type: 'replaced' }, () => end(CLOSE.normal, 'a newer connection of the provider took over'));
  }

  function end(code: number, why: string): void {
    if (state === 'over') return;
    leave();
    state = 'over';
    for (const timer of timers) clearInterval(timer);
    stopPinging();
    socket.close(code, why.replaceAll(/[^ -~]/g, '?').slice(0, CLOSE_REASON_BYTES_MAX));
    session.destroy();
    observer.left?.(connection, why);
  }

  async function recheckKey(): Promise<void> {
    if (!(await options.stillAdmitted()))
      end(CLOSE.policyViolation, 'the key that the proxy came with is no longer valid');
  }

  function every(ms: number, what: () => Promise<void>): void {
    timers.add(setInterval(() => void what(), ms).unref());
  }

  function later(ms: number, what: () => void): NodeJS.Timeout {
    const timer = setTimeout(what, ms).unref();
    timers.add(timer);
    return timer;
  }

  return {
    connection,
    session: () => (state === 'serving' && !session.closed && !session.destroyed ? calls : null),
    streams: () => running,
    replaced,
    drain(ms) {
      if (state === 'over') return;
      stopTakingCalls();
      later(ms, () => end(CLOSE.goingAway, 'the gateway shuts down'));
      control.sayLast({ type: 'draining' }, () => endWhenIdle(CLOSE.goingAway, 'the gateway shuts down'));
    },
    closed: closed.promise,
  };
}

/** What a close frame has room for. */
const CLOSE_REASON_BYTES_MAX = 123;

/** Tells of each registration whether it came too fast. */
function createRate({ registrationBurst: burst, registrationIntervalMs: intervalMs }: TunnelLimits): () => boolean {
  let due = 0;
  return () => {
    const now = performance.now();
    due = Math.max(due, now) + intervalMs;
    return due - now > burst * intervalMs;
  };
}
