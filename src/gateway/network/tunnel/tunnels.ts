import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { WebSocketServer } from 'ws';
import { GatewayError } from '#errors';
import { networkLevels, networkOf } from '#security';
import { isOwn, type Offer } from '#catalog';
import { TUNNEL_PATH, type AdmittedProviders, type TunnelConfig } from '#config';
import { addUpgrade, refuseUpgrade, requestIdOf, toGatewayError } from '#http';
import type { Registry } from '../registry/registry.ts';
import { TUNNEL_PROTOCOL } from '../tunnel-wire.ts';
import { payoutTerms, type PayoutRules } from '../payout-terms.ts';
import type { Ban } from '../registry/providers.ts';
import { createAdmission, createProviderList, type AdmitOptions, type AdmittedProvider } from './admission.ts';
import { ClientNetworks, DialsSpent } from './client-networks.ts';
import { SOCKET_OPTIONS } from './socket-stream.ts';
import { openTunnel, type Tunnel, type TunnelLimits, type CallSession, type TunnelObserver } from './tunnel.ts';

export interface Tunnels {
  /**
   * The session for calls to the proxy of a connection. null if the connection is not here, has registered nothing yet,
   * or is ending.
   */
  session(connection: string): CallSession | null;
  /** The network that a connection was dialled from; null if the connection is not here. */
  network(connection: string): string | null;
  /** Whether an offer is of a provider whom the operator neither is nor has let in by name. */
  isStranger(offer: Pick<Offer, 'endpoint'>): boolean;
  /** For metrics: the number of proxies that have registered here, and of running calls through them. */
  count(): { readonly connections: number; readonly streams: number };
  /**
   * Replaces the list of providers that may connect. The others that are connected get no new calls, and may end those
   * that run.
   */
  admitOnly(providers: AdmittedProviders): void;
  /** Tells every proxy to dial elsewhere, lets running calls finish within `drainMs`, then closes the rest. */
  close(drainMs: number): Promise<void>;
}

interface TunnelsOptions {
  /** The server that proxies dial. It must not listen yet. */
  readonly server: FastifyInstance;
  readonly authenticate: AdmitOptions['authenticate'];
  readonly identity: AdmitOptions['identity'];
  /** Whether the operator has closed an account. Default: none is closed. */
  readonly isClosed?: (account: string) => Promise<boolean>;
  readonly registry: Pick<
    Registry,
    'join' | 'register' | 'leave' | 'forget' | 'onSuperseded' | 'onGone' | 'banOf' | 'onBanned'
  >;
  readonly config: Pick<
    TunnelConfig,
    'providers' | 'silenceMs' | 'servicesMax' | 'strangersServicesMax' | 'connectionsPerAddressMax'
  >;
  /** Domains that wallets may sign in for, and that a signed registration may name as its router. */
  readonly domains: readonly string[];
  /** Version of this gateway, for the proxy's log. */
  readonly version: string;
  /** The chains over which this gateway pays, and what its operator says about payouts. Default: neither. */
  readonly payoutRules?: () => PayoutRules;
  /** The client address of a dial. Default: the peer of its socket, which may be a load balancer. */
  readonly addressOf?: (request: IncomingMessage) => string;
  readonly observer?: TunnelObserver;
  readonly limits?: Partial<TunnelsLimits>;
}

export interface TunnelsLimits extends TunnelLimits {
  readonly connectionsMax: number;
  /** Connections of one provider before their first registration. */
  readonly newConnectionsMax: number;
}

const LIMITS: TunnelsLimits = {
  connectionsMax: 10_000,
  newConnectionsMax: 4,
  handshakeMs: 10_000,
  registerMs: 60_000,
  drainMsMax: 15 * 60_000,
};

/** Makes the function that returns the network from which the provider of an offer dials this gateway, or null. */
export const networkOfProvider =
  (registry: Pick<Registry, 'locate'>, tunnels: Pick<Tunnels, 'network'>) =>
  ({ endpoint }: Pick<Offer, 'endpoint'>): string | null => {
    const location = endpoint.kind === 'tunnel' ? registry.locate(endpoint.provider) : null;
    return location?.kind === 'here' ? tunnels.network(location.connection) : null;
  };

/** Accepts the dials of providers' proxies on a server, and manages their tunnels. */
export function createTunnels(options: TunnelsOptions): Tunnels {
  const { server, registry, config, domains, version, observer = {}, addressOf = remoteAddress } = options;
  const limits = { ...LIMITS, ...options.limits };
  const listed = createProviderList(config.providers);
  const admit = createAdmission({
    authenticate: options.authenticate,
    identity: options.identity,
    listed,
  });
  const tunnels = new Map<string, Tunnel>();
  const dialledFrom = new Map<string, string>();
  const sockets = new WebSocketServer({
    ...SOCKET_OPTIONS,
    noServer: true,
    clientTracking: false,
    handleProtocols: () => TUNNEL_PROTOCOL,
  });
  const networks = new ClientNetworks(
    config.connectionsPerAddressMax,
    undefined,
    config.strangersServicesMax,
    limits.connectionsMax,
  );
  let dialling = 0;
  let closing = false;

  const checkCapacity = (address: string) => {
    if (closing) throw stopping();
    if (tunnels.size + dialling > limits.connectionsMax) throw full();
    networks.check(networkOf(address));
  };

  const open = (admitted: AdmittedProvider, request: IncomingMessage, wire: Socket, head: Buffer, address: string) => {
    sockets.handleUpgrade(request, wire, head, (socket) => {
      const network = networkOf(address);
      const place = networks.enter(network, admitted.provider);
      const tunnel = openTunnel({
        socket,
        wire,
        id: randomUUID(),
        network: networkLevels(network)[0]!,
        admitted,
        registry,
        rules: { domains, servicesMax: config.servicesMax },
        observer,
        version,
        payouts: payoutTerms(admitted.account, options.payoutRules?.()).summary,
        silenceMs: config.silenceMs,
        limits,
        place: {
          ...place,
          takeServices: (count) => (listed.isAnyone() ? place.takeServices(count) : NOTHING_TAKEN),
        },
        stillAdmitted: () => stillSells(admitted, options, () => admit(request, address)),
      });
      tunnels.set(tunnel.connection.id, tunnel);
      dialledFrom.set(tunnel.connection.id, network);
      void tunnel.closed.then(() => {
        tunnels.delete(tunnel.connection.id);
        dialledFrom.delete(tunnel.connection.id);
        place.leave();
      });
      observer.connected?.(tunnel.connection, address);
    });
  };

  const accept = async (request: IncomingMessage, wire: Socket, head: Buffer) => {
    const address = addressOf(request);
    const giveUp = () => wire.destroy();
    wire.on('error', giveUp);
    wire.setTimeout(limits.handshakeMs, giveUp);
    dialling += 1;
    try {
      networks.takeDial(networkOf(address));
      checkCapacity(address);
      const admitted = await admit(request, address);
      refuseBanned(registry.banOf(admitted.provider));
      // Other dials may have taken the last places meanwhile.
      checkCapacity(address);
      checkProvider(admitted.provider, tunnels.values(), limits.newConnectionsMax);
      if (wire.destroyed) return;
      wire.off('timeout', giveUp);
      wire.off('error', giveUp);
      open(admitted, request, wire, head, address);
    } catch (error) {
      refuse(error, request, wire, address);
    } finally {
      dialling -= 1;
    }
  };
  const refuse = (error: unknown, request: IncomingMessage, wire: Socket, address: string) => {
    const refusal = toGatewayError(error);
    // Reported once, so that a network that dials all the time cannot fill the log.
    if (!(error instanceof DialsSpent && error.isRepeated)) observer.rejected?.(refusal, address);
    if (!wire.destroyed) refuseUpgrade(wire, refusal, requestIdOf(request.headers));
  };
  // A fault in the WebSocket handshake gets the same error format as every other error.
  sockets.on('wsClientError', (error, wire, request) =>
    refuse(
      new GatewayError('invalid_request', `The WebSocket handshake is not valid: ${error.message}`),
      request,
      wire as Socket,
      addressOf(request),
    ),
  );

  addUpgrade(server, TUNNEL_PATH, (request, wire, head) => void accept(request, wire, head));
  explainPlainRequests(server);
  const stopListening = registry.onSuperseded((connection) => tunnels.get(connection)?.replaced());
  const stopForgetting = registry.onGone((provider) => {
    networks.gone(provider);
    // A stranger that was never called keeps no name. What cannot be forgotten now is left to the sweep.
    if (listed.isAnyone()) void registry.forget(provider).catch(() => {});
  });
  const stopBanning = registry.onBanned((provider) => {
    const reason = registry.banOf(provider)?.reason ?? '';
    for (const tunnel of tunnels.values())
      if (tunnel.connection.provider === provider) tunnel.drain(BANNED_DRAIN_MS, reason);
  });

  return {
    admitOnly(providers) {
      listed.replace(providers);
      for (const tunnel of tunnels.values()) if (!listed.has(tunnel.names)) tunnel.drain(BANNED_DRAIN_MS, UNLISTED);
    },
    session: (connection) => tunnels.get(connection)?.session() ?? null,
    network: (connection) => dialledFrom.get(connection) ?? null,
    isStranger: (offer) => listed.isAnyone() && !isOwn(offer),
    count: () => countOf([...tunnels.values()]),
    async close(drainMs) {
      closing = true;
      const open = [...tunnels.values()];
      for (const tunnel of open) tunnel.drain(drainMs);
      await Promise.all(open.map(({ closed }) => closed));
      stopListening();
      stopForgetting();
      stopBanning();
    },
  };
}

function countOf(tunnels: readonly Tunnel[]): { readonly connections: number; readonly streams: number } {
  return {
    connections: tunnels.filter((tunnel) => tunnel.session() !== null).length,
    streams: tunnels.reduce((sum, tunnel) => sum + tunnel.streams(), 0),
  };
}

const NOTHING_TAKEN = () => {};
const UNLISTED = "it is no longer on this gateway's list of providers";
/** The time that the running calls of a provider have to end once it is banned. */
const BANNED_DRAIN_MS = 30_000;

function refuseBanned(ban: Ban | null): void {
  if (ban !== null)
    throw new GatewayError(
      'permission_denied',
      `The operator of this gateway has banned provider ${ban.provider}: ${ban.reason}. What it earned stays on its account`,
    );
}

const stopping = () =>
  new GatewayError(
    'service_unavailable',
    'This gateway is shutting down: connect to another one, or retry in a moment',
    { retryAfterS: 1 },
  );

const full = () =>
  new GatewayError('service_unavailable', 'This gateway has reached its limit of connected providers', {
    retryAfterS: 10,
  });

function checkProvider(provider: string, tunnels: Iterable<Tunnel>, newConnectionsMax: number): void {
  let opening = 0;
  // A proxy that drains has no session either, but its running calls show that it had registered.
  for (const { connection, session, streams } of tunnels)
    if (connection.provider === provider && session() === null && streams() === 0) opening += 1;
  if (opening >= newConnectionsMax)
    throw new GatewayError(
      'rate_limit_exceeded',
      `Provider ${provider} has ${opening} connections that have not registered anything yet`,
      { retryAfterS: 2 },
    );
}

/** Answers requests to the tunnel's path that are not a WebSocket handshake. */
function explainPlainRequests(server: FastifyInstance): void {
  server.get(TUNNEL_PATH, { schema: { hide: true } }, (request, reply) => {
    return reply
      .code(426)
      .headers({ upgrade: 'websocket', connection: 'upgrade', 'x-request-id': request.id })
      .send({ error: { message: whyNoUpgrade(request.headers), type: 'invalid_request', code: 426, param: null } });
  });
}

/** Explains why there was no upgrade: a reverse proxy dropped a header of the handshake, or the request was not one. */
function whyNoUpgrade({ upgrade, 'sec-websocket-protocol': protocol }: IncomingMessage['headers']): string {
  if (protocol === undefined || (upgrade !== undefined && upgrade.toLowerCase() !== 'websocket'))
    return `Providers' proxies connect here: "tollgate provide" opens a WebSocket with the subprotocol ${TUNNEL_PROTOCOL}`;
  const dropped = upgrade === undefined ? 'Upgrade' : 'Connection';
  return `Something between client and gateway dropped the ${dropped} header of this WebSocket. A reverse proxy must pass on Upgrade and Connection (nginx: proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade")`;
}

const remoteAddress = ({ socket }: IncomingMessage): string => socket.remoteAddress ?? '';

const ENDS: readonly GatewayError['code'][] = ['unauthorized', 'permission_denied'];

/**
 * False if the key of a provider was revoked, expired or restricted meanwhile, or the account of its wallet was closed.
 * A wallet signed in for its connection alone, so its signature is not looked at again. Other errors, such as one of
 * the database, count as true.
 */
async function stillSells(
  { byKey, account }: AdmittedProvider,
  { isClosed }: TunnelsOptions,
  admit: () => Promise<AdmittedProvider>,
): Promise<boolean> {
  try {
    if (!byKey) return !(await isClosed?.(account));
    await admit();
    return true;
  } catch (error) {
    return !(error instanceof GatewayError && ENDS.includes(error.code));
  }
}
