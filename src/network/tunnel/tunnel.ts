import { randomBytes } from 'node:crypto';
import { connect, type ClientHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import bs58 from 'bs58';
import type { WebSocket } from 'ws';
import { Timers } from '#wire';
import type { Connection, Registry } from '../registry/registry.ts';
import type { AdmittedProvider } from './admit-provider.ts';
import type { RegistrationRules } from './check-registration.ts';
import { openControl } from './control-stream.ts';
import { CountedCalls } from './counted-calls.ts';
import { createFrameMeter, type FrameBudget } from './frame-meter.ts';
import { keepAlive } from './keep-alive.ts';
import { CLOSE, createRegistrar, type RegistrationLimits } from './registrar.ts';
import { SESSION_OPTIONS, TUNNEL_WINDOW } from './session-options.ts';
import { createSocketStream } from './socket-stream.ts';
import type { CallSession, TunnelObserver } from './tunnels.ts';

interface TunnelOptions {
  readonly socket: WebSocket;
  /** The socket below the WebSocket. */
  readonly wire: Socket;
  readonly id: string;
  readonly admitted: AdmittedProvider;
  readonly registry: Pick<Registry, 'join' | 'register' | 'leave'>;
  readonly rules: RegistrationRules;
  readonly observer: TunnelObserver;
  readonly version: string;
  /** How earnings are paid here, in words for the provider. */
  readonly payouts: string;
  readonly silenceMs: number;
  readonly limits: TunnelLimits;
  /** The budget for all connections from its network. */
  readonly frames: FrameBudget;
  /** Whether the proxy's API key is still valid, or its wallet's account not closed. True if unknown. Never rejects. */
  readonly stillAdmitted: () => Promise<boolean>;
}

export interface TunnelLimits extends RegistrationLimits {
  /** Timeout for the proxy to accept the control stream. */
  readonly handshakeMs: number;
  /** Timeout for the first accepted registration. */
  readonly registerMs: number;
  /** Longest time for running calls once the tunnel accepts no new calls. */
  readonly drainMsMax: number;
}

/** The connection of one proxy, from its upgrade to its end. */
export interface Tunnel {
  readonly connection: Connection;
  /** The names by which a list of providers may have it. */
  readonly names: readonly string[];
  /** The session for calls. null before the first registration and while the tunnel ends. */
  session(): CallSession | null;
  /** The number of running calls. */
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

const CHALLENGE_BYTES = 32;
/** Interval of the checks whether a provider may still sell. A revoked key ends its tunnel within a second. */
const RECHECK_MS = 500;

/** Runs HTTP/2 over an accepted WebSocket, with the gateway as the client, and handles the proxy's registrations. */
export function openTunnel(options: TunnelOptions): Tunnel {
  const { socket, wire, admitted, registry, observer, limits } = options;
  const connection: Connection = { id: options.id, provider: admitted.provider, account: admitted.account };
  const challenge = bs58.encode(randomBytes(CHALLENGE_BYTES));
  const closed = Promise.withResolvers<void>();
  const timers = new Timers();
  /** New calls are possible only in `serving`. */
  let state: 'open' | 'serving' | 'draining' | 'over' = 'open';
  let askedToDrain = false;

  const stream = createSocketStream(socket, {
    meter: createFrameMeter(options.frames),
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

  watchProxy(options, session, timers, end);
  const opening = timers.later(limits.handshakeMs, () =>
    end(CLOSE.policyViolation, 'the proxy did not open its side of the tunnel in time'),
  );
  const register = createRegistrar({
    ...options,
    connection,
    challenge,
    control: () => control,
    state: () => (state === 'open' || state === 'serving' ? state : 'ending'),
    serve() {
      state = 'serving';
    },
    replaced,
    end,
  });
  const control = openControl(session, {
    opened() {
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

  function stopTakingCalls(): void {
    if (state !== 'open' && state !== 'serving') return;
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
    observer.left?.(connection, why);
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

/** RFC 6455, 5.5: a control frame has at most 125 bytes, of which two are the code. */
const CLOSE_REASON_BYTES_MAX = 123;

const closeReason = (why: string) => why.replaceAll(/[^ -~]/g, '?').slice(0, CLOSE_REASON_BYTES_MAX);

/** Ends a tunnel whose proxy is silent, or whose key became invalid or whose account was closed. */
function watchProxy(
  { socket, wire, silenceMs, admitted, stillAdmitted }: TunnelOptions,
  session: ClientHttp2Session,
  timers: Timers,
  end: (code: number, why: string) => void,
): void {
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
  const why = admitted.byKey ? 'the key that the proxy came with is no longer valid' : 'the account was closed';
  let asking = false;
  const recheck = async () => {
    // The last check may still run if the database is slow.
    if (asking) return;
    asking = true;
    if (!(await stillAdmitted())) end(CLOSE.policyViolation, why);
    asking = false;
  };
  timers.every(RECHECK_MS, () => void recheck());
}
