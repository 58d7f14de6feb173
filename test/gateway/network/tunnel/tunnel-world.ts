import type { IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { createCatalog, type Catalog, type TunnelEndpoint } from '#catalog';
import { createServer } from '#http';
import { type Caller, createLimitsStore } from '#accounts';
import type { UpstreamRequest } from '#call';
import {
  createAttempts,
  createAuthenticator,
  createIdentity,
  createKeyStore,
  createSignIn,
  type KeyStore,
} from '#auth';
import type { NewKeyFields } from '#auth/keys';
import type { Registry, TunnelObserver, Tunnels } from '#network';
import type { Authenticator } from '../../../../src/gateway/auth/authenticator.ts';
import { createRegistry } from '../../../../src/gateway/network/registry/registry.ts';
import { createTunnels, type TunnelsLimits } from '../../../../src/gateway/network/tunnel/tunnels.ts';
import {
  createTunnelUpstream,
  type TunnelUpstreamOptions,
} from '../../../../src/gateway/network/upstream/tunnel-upstream.ts';
import type { Upstream, UpstreamExchange, UpstreamReply } from '../../../../src/gateway/call/upstream.ts';
import { documentOf, dialPeer, type TunnelPeer, type TunnelPeerOptions } from '../../../support/tunnel-peer.ts';
import { DOMAIN, solanaWallet } from '../../../support/wallets.ts';
import { openTestDatabase } from '../../test-database.ts';
import { atThisLoad } from '../../../support/at-this-load.ts';
import { DEFAULT_LIMITS } from '../../../support/default-limits.ts';

/** A gateway's side of tunnels with its real neighbours: server, sign-in, keys, registry and database. */
export interface World {
  readonly url: string;
  readonly port: number;
  readonly tunnels: Tunnels;
  readonly registry: Registry;
  readonly catalog: Catalog;
  readonly keys: KeyStore;
  readonly upstream: Upstream<TunnelEndpoint>;
  /** What was told, in order: `connected`, `registered 1`, `left <why>` and so on. */
  readonly told: string[];
  /** Sends a call through the tunnel of a provider. */
  send(provider: string, request?: Partial<UpstreamRequest>, last?: boolean): UpstreamExchange;
  /** A peer that has registered a model. */
  peer(options?: Omit<TunnelPeerOptions, 'url'>, name?: string): Promise<TunnelPeer>;
  dial(options?: Omit<TunnelPeerOptions, 'url'>): Promise<TunnelPeer>;
  key(fields?: Partial<NewKeyFields>): Promise<string>;
}

export interface WorldOptions {
  readonly providers?: readonly string[];
  readonly silenceMs?: number;
  readonly servicesMax?: number;
  readonly strangersServicesMax?: number;
  readonly graceMs?: number;
  readonly connectionsPerAddressMax?: number;
  readonly limits?: Partial<TunnelsLimits>;
  readonly isClosed?: (account: string) => Promise<boolean>;
  /** Comes before the authenticator. */
  readonly authenticate?: (
    authenticate: Authenticator['authenticate'],
    headers: IncomingHttpHeaders,
    address: string,
  ) => Promise<Caller>;
  readonly upstream?: Partial<TunnelUpstreamOptions>;
  /** In place of the registry's own methods. */
  readonly registry?: (registry: Registry) => Partial<Registry>;
}

export async function startWorld(options: WorldOptions = {}): Promise<World> {
  const now = Date.now;
  const database = await openTestDatabase('sqlite');
  const catalog = createCatalog();
  const real = await createRegistry({
    database,
    catalog,
    node: { id: 'this', url: null },
    now,
    graceMs: options.graceMs ?? 60_000,
    onError: () => {},
  });
  const registry: Registry = { ...real, ...options.registry?.(real) };
  const keys = createKeyStore(database, { now });
  const attempts = createAttempts({ perMinute: 10_000, now });
  const signIn = await createSignIn({
    domains: [DOMAIN],
    lifetimeMsMax: 3_600_000,
    skewMs: 30_000,
    chains: [],
    attempts,
    now,
    elapsed: now,
  });
  const authenticator = createAuthenticator({
    keys,
    limits: createLimitsStore(database, { now }),
    signIn,
    attempts,
    acceptDevelopmentKeys: true,
    now,
  });
  const server = createServer({ limits: LIMITS, onError: () => {} });
  const told: string[] = [];
  const observer: TunnelObserver = {
    rejected: (error) => told.push(`rejected ${error.code}`),
    connected: () => told.push('connected'),
    registered: (_connection, { services }) => told.push(`registered ${services}`),
    refused: () => told.push('refused'),
    replaced: () => told.push('replaced'),
    draining: () => told.push('draining'),
    onLeave: (_connection, why) => told.push(`left ${why}`),
    failed: () => told.push('failed'),
  };
  const tunnels = createTunnels({
    server,
    authenticate: (headers, address) =>
      options.authenticate?.(authenticator.authenticate, headers, address) ??
      authenticator.authenticate(headers, address),
    identity: createIdentity({ seed: '07'.repeat(32) }),
    registry,
    config: {
      providers: options.providers ?? 'anyone',
      silenceMs: options.silenceMs ?? 15_000,
      servicesMax: options.servicesMax ?? 100,
      strangersServicesMax: options.strangersServicesMax ?? 20_000,
      connectionsPerAddressMax: options.connectionsPerAddressMax ?? 1_000,
    },
    domains: [DOMAIN],
    version: '1.2.3',
    observer,
    ...(options.limits ? { limits: options.limits } : {}),
    ...(options.isClosed ? { isClosed: options.isClosed } : {}),
  });
  const upstream = createTunnelUpstream({
    consumerTag: (provider, account) => `${provider} ${account}`,
    tunnels,
    peers: null,
    registry,
    waitMs: 500,
    headTimeoutMs: 10_000,
    idleTimeoutMs: 10_000,
    connectionsMax: 2_048,
    ...options.upstream,
  });
  server.get('/plain', () => 'plain');
  await server.listen({ port: 0, host: '127.0.0.1' });
  const { port } = server.server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const peers: TunnelPeer[] = [];
  onTestFinished(async () => {
    for (const peer of peers) peer.kill();
    await upstream.close();
    await tunnels.close(0);
    await server.close();
    authenticator.close();
    await real.close();
  });
  const world: World = {
    url,
    port,
    tunnels,
    registry,
    catalog,
    keys,
    upstream,
    told,
    send: (provider, request, last) =>
      upstream.send(
        { kind: 'tunnel', provider, basePath: '/model/peer%2Fmodel' },
        {
          method: 'POST',
          path: '/chat/completions',
          headers: { 'content-type': 'application/json' },
          body: '{}',
          ...request,
        },
        'tollgate:local:alice',
        last,
      ),
    async dial(dial = {}) {
      const peer = await dialPeer({ url, ...(dial.wallet || dial.headers ? {} : { wallet: solanaWallet() }), ...dial });
      peers.push(peer);
      return peer;
    },
    async peer(dial, name) {
      const peer = await world.dial(dial);
      const answer = await peer.register(documentOf(name, `Peer ${peers.length}`));
      if (answer.type !== 'registered') throw new Error(`the gateway answered ${JSON.stringify(answer)}`);
      return peer;
    },
    async key(fields = {}) {
      const made = await keys.create({ account: 'tollgate:local:acme', label: 'test', kind: 'live', ...fields });
      return made!.text;
    },
  };
  return world;
}

/** Resolves when the condition holds. */
export async function until(condition: () => boolean, ms = 60_000): Promise<void> {
  const late = performance.now() + atThisLoad(ms);
  while (!condition()) {
    if (performance.now() > late) throw new Error(`not within ${ms} ms: ${condition.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** A whole reply as text. */
export async function textOf(
  exchange: UpstreamExchange,
): Promise<{ readonly reply: UpstreamReply; readonly text: string }> {
  const reply = await exchange.head;
  return { reply, text: (await restOf(reply)).toString() };
}

/** What is left of a reply. */
export async function restOf(reply: UpstreamReply): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for (;;) {
    const arrived = await reply.read();
    if (arrived === null) return Buffer.concat(chunks);
    chunks.push(...arrived);
  }
}

const LIMITS = {
  ...DEFAULT_LIMITS,
  anonymousRequestsPerMinute: 1_000_000,
  tokensPerMinute: 1_000_000,
  chatBodyBytesMax: 10_000,
  mediaBodyBytesMax: 10_000,
  bodiesWaitMs: 0,
  bodyBytesMax: 10_000,
  messagesMax: 10,
  jsonKeysMax: 1_000,
  requestTimeoutMs: 5_000,
  clientStallMs: 10_000,
  drainOnShutdownMs: 0,
};
