import { randomBytes } from 'node:crypto';
import { connect, type ClientHttp2Session, type ClientSessionOptions } from 'node:http2';
import type { Socket } from 'node:net';
import bs58 from 'bs58';
import type { WebSocket } from 'ws';
import { Timers } from '#wire';
import { createFrameMeter } from '#wire/frame-meter';
import type { GatewayError } from '#errors';
import type { ProxyConnection } from '../registry/presence.ts';
import type { Registry } from '../registry/registry.ts';
import { type AdmittedProvider, checkRegistration, type RegistrationRules } from './admission.ts';
import type { NetworkPlace } from './client-networks.ts';
import { openControl } from './control-stream.ts';
import { keepAlive, createSocketStream } from './socket-stream.ts';
import { RegistrationError } from '../registry/document.ts';
import { ConnectionSuperseded } from '../registry/registrations.ts';
import type { ProxyMessage, RegistrationProblem } from '../tunnel-wire.ts';

/** The part of an HTTP/2 session that a call needs. */
export type CallSession = Pick<ClientHttp2Session, 'request' | 'closed' | 'destroyed'>;

/** Events of connections, for the log and metrics. Methods return at once and never throw. */
export interface TunnelObserver {
  /** A dial was refused. `error` was sent to the proxy. */
  readonly rejected?: (error: GatewayError, address: string) => void;
  /** A proxy was authenticated. It has registered nothing yet. */
  readonly connected?: (connection: ProxyConnection, address: string) => void;
  readonly registered?: (
    connection: ProxyConnection,
    counts: { readonly services: number; readonly revision: number },
  ) => void;
  readonly refused?: (connection: ProxyConnection, message: string, problems: readonly RegistrationProblem[]) => void;
  /** A newer connection of the provider took over. `onLeave` follows. */
  readonly replaced?: (connection: ProxyConnection) => void;
  /** The proxy accepts no new calls. Running calls go on. */
  readonly draining?: (connection: ProxyConnection) => void;
  readonly onLeave?: (connection: ProxyConnection, why: string) => void;
  /** A registration could not be stored. The tunnel was closed, and the proxy will dial again. */
  readonly failed?: (connection: ProxyConnection, error: unknown) => void;
}

interface TunnelOptions {
  readonly socket: WebSocket;
  readonly wire: Socket;
  readonly id: string;
  /** See ProxyConnection. */
  readonly network: string;
  readonly admitted: AdmittedProvider;
  readonly registry: Pick<Registry, 'join' | 'register' | 'leave'>;
  readonly rules: RegistrationRules;
  readonly observer: TunnelObserver;
  readonly version: string;
  /** How earnings are paid here, in words for the provider. */
  readonly payouts: string;
  readonly silenceMs: number;
  readonly limits: TunnelLimits;
  readonly place: Pick<NetworkPlace, 'frames' | 'takeRegistration' | 'takeServices'>;
  /** Whether the proxy's API key is still valid, or its wallet's account not closed. True if unknown. Never rejects. */
  readonly stillAdmitted: () => Promise<boolean>;
}

export interface TunnelLimits {
  /** Timeout for the proxy to accept the control stream. */
  readonly handshakeMs: number;
  /** Timeout for the first accepted registration. */
  readonly registerMs: number;
  /** Longest time for running calls once the tunnel accepts no new calls. */
  readonly drainMsMax: number;
}

/** The connection of one proxy, from its upgrade to its end. */
export interface Tunnel {
  readonly connection: ProxyConnection;
  /** The names by which a list of providers may have it. */
  readonly names: readonly string[];
  /** The session for calls. null before the first registration and while the tunnel ends. */
  session(): CallSession | null;
  streams(): number;
  /**
   * To be called when a newer connection of the provider took over. Ends the tunnel. Bytes that still arrive from it
   * reach no call.
   */
  replaced(): void;
  /**
   * Tells the proxy that it gets no more calls. The tunnel ends after its running calls, at the latest after `ms`.
   * `banned`: the operator's reason. Without it the gateway stops, and the proxy dials again.
   */
  drain(ms: number, banned?: string): void;
  /** Resolves when its socket is closed. */
  readonly closed: Promise<void>;
}

/** Flow-control window of a stream. With the bytes in its reader's queue, a stalled stream holds at most 128 KiB. */
const STREAM_WINDOW = 96 * 1024;
const HEADER_BYTES_MAX = 64 * 1024;
const HEADER_PAIRS_MAX = 256;

/**
 * Flow-control window for all streams of a tunnel. A stalled stream does not use it up, because its bytes are
 * acknowledged for the session as soon as they arrive.
 */
const TUNNEL_WINDOW = 4 * 1024 * 1024;

const SESSION_OPTIONS = {
  settings: { enablePush: false, initialWindowSize: STREAM_WINDOW, maxHeaderListSize: HEADER_BYTES_MAX },
  maxHeaderListPairs: HEADER_PAIRS_MAX,
  // In megabytes. With the default of 10, about a hundred stalled streams with full windows would make the session
  // refuse new ones. The number of streams is limited by the proxy's setting.
  maxSessionMemory: 4_096,
} as const satisfies ClientSessionOptions;

/** Close codes of RFC 6455 and of the IANA registry. */
const CLOSE = { normal: 1000, goingAway: 1001, policyViolation: 1008, tryAgainLater: 1013 } as const;

/** Random bytes of the text that the signatures of a connection's registrations must contain. */
const CHALLENGE_BYTES = 32;
/** Interval of the checks whether a provider may still sell. A revoked key ends its tunnel within a second. */
const RECHECK_MS = 500;

/** Runs HTTP/2 over an accepted WebSocket, with the gateway as the client, and handles the proxy's registrations. */
export function openTunnel(options: TunnelOptions): Tunnel {
  const { socket, wire, admitted, registry, observer, limits, silenceMs } = options;
  const connection: ProxyConnection = {
    id: options.id,
    provider: admitted.provider,
    account: admitted.account,
    network: options.network,
  };
  const challenge = bs58.encode(randomBytes(CHALLENGE_BYTES));
  const closed = Promise.withResolvers<void>();
  const timers = new Timers();
  /** New calls are possible only in `serving`. */
  let state: 'open' | 'serving' | 'draining' | 'over' = 'open';
  let askedToDrain = false;
  let rechecking = false;

  const stream = createSocketStream(socket, {
    meter: createFrameMeter(options.place.frames),
    wire,
    flooded: (why) => end(CLOSE.policyViolation, why),
  });
  const session = connect('http://tunnel', { createConnection: () => stream, ...SESSION_OPTIONS });
  const calls = new CountedCalls(session);
  session.setLocalWindowSize(TUNNEL_WINDOW);
  session.on('error', (error) => end(CLOSE.policyViolation, `the tunnel broke: ${error.message}`));
  session.on('goaway', stopTakingCalls);
  session.on('close', () => end(CLOSE.normal, 'the proxy closed the connection'));
  socket.on('close', () => {
    end(CLOSE.normal, 'the connection was lost');
    closed.resolve();
  });

  timers.add(
    keepAlive({
      wire,
      silenceMs,
      ping(answered) {
        if (!session.destroyed) session.ping(answered);
      },
      silent() {
        // Terminated without a closing handshake, because nobody would answer it.
        socket.terminate();
        end(CLOSE.policyViolation, `the proxy was silent for ${silenceMs / 1000} s`);
      },
    }),
  );
  timers.every(RECHECK_MS, () => void recheck());
  const opening = timers.later(limits.handshakeMs, () =>
    end(CLOSE.policyViolation, 'the proxy did not open its side of the tunnel in time'),
  );
  const control = openControl(session, {
    onOpen() {
      clearTimeout(opening);
      const { provider, caip10: account } = admitted;
      const { version, payouts } = options;
      control.say({ type: 'welcome', provider, account, challenge, version, payouts });
      timers.later(limits.registerMs, () => {
        if (state === 'open') end(CLOSE.policyViolation, 'the proxy registered nothing');
      });
    },
    message(message) {
      if (message.type === 'register') return register(message);
      // Reported once, so that a proxy cannot fill the log.
      if (!askedToDrain) observer.draining?.(connection);
      askedToDrain = true;
      stopTakingCalls();
    },
    ended(why) {
      if (state !== 'draining') end(CLOSE.policyViolation, why);
      else calls.whenIdle(() => end(CLOSE.normal, 'the proxy has finished'));
    },
  });

  /** Ends the tunnel if its key became invalid or its account was closed. */
  async function recheck(): Promise<void> {
    // The last check may still run if the database is slow.
    if (rechecking) return;
    rechecking = true;
    if (!(await options.stillAdmitted()))
      end(
        CLOSE.policyViolation,
        admitted.byKey ? 'the key that the proxy came with is no longer valid' : 'the account was closed',
      );
    rechecking = false;
  }

  /** Handles a registration. Never rejects. */
  async function register(message: Extract<ProxyMessage, { type: 'register' }>): Promise<void> {
    if (isEnding()) return;
    const waitMs = options.place.takeRegistration(message.document);
    if (waitMs === null)
      return end(CLOSE.tryAgainLater, 'registrations of this provider or of its network come too fast');
    if (waitMs > 0) await new Promise<void>((resolve) => timers.later(waitMs, resolve));
    if (isEnding()) return;
    let first = false;
    let giveBack: (() => void) | null = null;
    try {
      const services = await checkRegistration(message, admitted, challenge, options.rules);
      giveBack = options.place.takeServices(services.length);
      if (giveBack === null) throw noRoom(services.length);
      if (state === 'open') {
        // The tunnel must accept calls before it joins, because waiting calls come as soon as the registry knows it.
        state = 'serving';
        first = true;
        await registry.join(connection, services[0]?.providerName);
      }
      const { revision, raised } = await registry.register(connection, services);
      if (isEnding()) return;
      observer.registered?.(connection, { services: services.length, revision });
      const names = services.map(({ name }) => name);
      control.say({ type: 'registered', revision, services: names, ...(raised.length === 0 ? {} : { raised }) });
    } catch (error) {
      giveBack?.();
      if (error instanceof RegistrationError) return refuse(error, first);
      if (isEnding()) return;
      if (error instanceof ConnectionSuperseded) return replaced();
      observer.failed?.(connection, error);
      end(CLOSE.tryAgainLater, 'the registry cannot be reached at the moment');
    }
  }

  function refuse({ message, problems }: RegistrationError, first: boolean): void {
    observer.refused?.(connection, message, problems);
    control.sayLast({ type: 'refused', message, problems }, () => {
      // The tunnel serves nothing, and it may have replaced a working connection of its provider.
      if (first) end(CLOSE.policyViolation, 'its first registration was refused');
    });
  }

  function isEnding(): boolean {
    return state === 'draining' || state === 'over';
  }

  function stopTakingCalls(): void {
    if (isEnding()) return;
    leave();
    state = 'draining';
    timers.later(limits.drainMsMax, () => end(CLOSE.normal, 'running calls did not end in time'));
  }

  function leave(): void {
    if (state === 'serving') void registry.leave(connection);
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
    timers.clear();
    socket.close(code, closeReason(why));
    session.destroy();
    observer.onLeave?.(connection, why);
  }

  return {
    connection,
    names: [admitted.provider, admitted.account, admitted.caip10],
    session: () => (state === 'serving' && !session.closed && !session.destroyed ? calls : null),
    streams: () => calls.running,
    replaced,
    drain(ms, banned) {
      if (state === 'over') return;
      stopTakingCalls();
      const goAway = () =>
        banned === undefined
          ? end(CLOSE.goingAway, 'the gateway shuts down')
          : end(CLOSE.policyViolation, 'the provider was banned');
      timers.later(ms, goAway);
      control.sayLast({ type: 'draining', ...(banned === undefined ? {} : { banned }) }, () => calls.whenIdle(goAway));
    },
    closed: closed.promise,
  };
}

const noRoom = (count: number) =>
  new RegistrationError([
    {
      key: 'services',
      wrong: `has ${count}, for which there is no room beside those of other providers, or of your network`,
      right: 'fewer services. The operator of this gateway sets the room in tunnel.strangers_services_max',
    },
  ]);

/** RFC 6455, 5.5: a control frame has at most 125 bytes, of which two are the code. */
const CLOSE_REASON_BYTES_MAX = 123;

const closeReason = (why: string) => why.replaceAll(/[^ -~]/g, '?').slice(0, CLOSE_REASON_BYTES_MAX);

/** Opens calls on the session of a tunnel, and counts the running ones. */
class CountedCalls implements CallSession {
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

  request(...args: Parameters<CallSession['request']>): ReturnType<CallSession['request']> {
    const call = this.#session.request(...args);
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
