import { sign as signWith } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type AgentCard, verifyAgentCardSignature } from '@a2a-js/sdk';
import type { FastifyInstance } from 'fastify';
import { onTestFinished } from 'vitest';
import { createOwnOrigin, parseHost } from '#security';
import { createCardKey, createIdentity } from '../../../../src/gateway/auth/identity.ts';
import { createCatalog } from '../../../../src/server/catalog/catalog.ts';
import type { LimitsConfig } from '../../../../src/server/config/config.ts';
import { createServer as createGatewayServer } from '../../../../src/server/http/server.ts';
import type { Offer } from '../../../../src/server/catalog/offers.ts';
import { createCards, type CardsOptions } from '../../../../src/a2a/cards/cards.ts';
import { createCardOrigin } from '../../../../src/a2a/cards/card-pages.ts';
import { anonymousAt } from '#accounts';
import { addCardRoutes } from '../../../../src/a2a/cards/card-routes.ts';
import { CARD_BYTES_MAX, CARD_REQUEST_HEADERS, type FetchCard } from '../../../../src/a2a/cards/fetch-card.ts';
import type { SignBytes } from '../../../../src/a2a/cards/sign-card.ts';
import { offer } from '../../../gateway/call/routing/offers.ts';

export const IDENTITY = createIdentity({ seed: '000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f' });
const cardKey = createCardKey(IDENTITY);
const { receiptKey } = IDENTITY;

export const ES256: SignBytes = { ...cardKey, jku: null };
export const EDDSA: SignBytes = {
  kid: receiptKey.id,
  alg: 'EdDSA',
  jku: null,
  sign: (input) => signWith(null, input, receiptKey.privateKey),
};
const JWKS = { keys: [receiptKey.jwk, cardKey.jwk] };

export interface AgentOffer {
  readonly service?: string;
  readonly provider?: string;
  readonly baseUrl?: string;
  readonly cardPath?: string;
  readonly more?: Partial<Offer>;
}

/** An offer of an agent at one provider. */
export function agentOffer({
  service = 'acme/writer',
  provider = 'acme',
  baseUrl = 'http://127.0.0.1:9',
  cardPath = '/.well-known/agent-card.json',
  more = {},
}: AgentOffer = {}): Offer {
  return {
    ...offer({ provider, service, primitive: 'agent', pricing: { call: 0.02 } }),
    displayName: 'Writer',
    description: 'Writes what it is told to.',
    endpoint: { kind: 'direct', baseUrl, headers: {} },
    agent: { cardPath, rpcPath: null, chargedPer: 'message', nestedMax: 0n },
    ...more,
  };
}

/** An agent's host, on a real socket. `asked` has the paths in order. */
export async function startAgentHost(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url!);
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

/** A host that shows this card at either well-known path. */
export const startAgent = (card: unknown) =>
  startAgentHost((_request, response) =>
    response.setHeader('content-type', 'application/json').end(JSON.stringify(card)),
  );

/** As the gateway fetches: no redirects, no more than may be read. */
export const fetchOverHttp: FetchCard = async (of, path, signal) => {
  if (of.endpoint.kind !== 'direct') throw new Error('no tunnel here');
  const reply = await fetch(of.endpoint.baseUrl + path, { headers: CARD_REQUEST_HEADERS, redirect: 'manual', signal });
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  if (reply.body)
    for await (const piece of reply.body) {
      pieces.push(piece);
      bytes += piece.byteLength;
      if (bytes > CARD_BYTES_MAX) break;
    }
  return { status: reply.status, headers: Object.fromEntries(reply.headers), body: Buffer.concat(pieces) };
};

const LIMITS = {
  connectionsMax: 1_000,
  bodyBytesMax: 1024,
  requestTimeoutMs: 30_000,
  jsonDepthMax: 32,
  jsonKeysMax: 1000,
} as LimitsConfig;

export interface GatewayOptions extends Partial<CardsOptions> {
  readonly offers?: readonly Offer[];
  readonly publicUrl?: string | null;
  readonly domains?: readonly string[];
  /** Listens at every address of the machine, as far as cards know. */
  readonly everywhere?: boolean;
  /** What else is there. */
  readonly mount?: (server: FastifyInstance) => Promise<void>;
}

/** A gateway that shows cards and keys, listening. */
export async function startGateway({
  offers = [],
  publicUrl,
  domains = [],
  everywhere = false,
  mount,
  ...more
}: GatewayOptions = {}) {
  const catalog = createCatalog();
  catalog.replace('test', offers);
  const server = createGatewayServer({ limits: LIMITS, onError: (error) => failures.push(error) });
  const failures: unknown[] = [];
  const faults: string[] = [];
  let url = '';
  const cards = createCards({
    fetchCard: fetchOverHttp,
    sign: ES256,
    auth: { openIdConnectUrl: 'https://issuer.example/.well-known/openid-configuration', scopes: ['agents'] },
    x402: true,
    version: '1.2.3',
    now: Date.now,
    random: () => 0.5,
    networkOf: () => null,
    onError: (error) => faults.push((error as Error).message),
    ...more,
  });
  addCardRoutes(server, {
    catalog,
    cards,
    bridged: async () => null,
    visitor: (_headers, address) => anonymousAt(address),
    namesBelow: (prefix) =>
      catalog
        .offers('agent')
        .map(({ service }) => service)
        .filter((name) => name.startsWith(prefix)),
    origin: (request) => {
      const own = { publicUrl: publicUrl === undefined ? url : publicUrl, domains };
      const ownOrigin = createOwnOrigin({ ...own, names: domains.map((domain) => parseHost(domain)!.name) });
      return createCardOrigin({ ...own, ownOrigin, listening: () => (everywhere ? null : url) })(request);
    },
  });
  server.get('/.well-known/jwks.json', () => JWKS);
  await mount?.(server);
  onTestFinished(() => server.close());
  url = await server.listen({ host: '127.0.0.1', port: 0 });
  const get = (path: string, version?: string, headers: Record<string, string> = {}) =>
    fetch(url + path, { headers: { ...headers, ...(version === undefined ? {} : { 'a2a-version': version }) } });
  return {
    url,
    server,
    catalog,
    cards,
    failures,
    /** Why agents showed no card. */
    faults,
    get,
    card: async (path: string, version?: string) => (await (await get(path, version)).json()) as Card,
  };
}

export type Card = Record<string, unknown> & {
  readonly signatures: readonly { readonly protected: string; readonly signature: string }[];
};

/** The SDK's verifier, with keys from where the signature says they are; only below `url`. */
export function verifierFor(url: string): (card: unknown) => Promise<void> {
  const verify = verifyAgentCardSignature(async (kid, jku) => {
    if (!jku?.startsWith(`${url}/`)) throw new Error(`${jku} is not ours`);
    const { keys } = (await (await fetch(jku)).json()) as typeof JWKS;
    const key = keys.find((one) => one.kid === kid);
    if (!key) throw new Error(`no key ${kid}`);
    return key;
  });
  return (card) => verify(structuredClone(card) as AgentCard);
}

/** A card with something of everything, as an agent of 1.0 shows it. */
export const RICH_CARD = {
  name: 'Route planner',
  description: 'Plans routes — even to Ōsaka 🗾.\nAsk it.',
  version: '2.1.0',
  supportedInterfaces: [
    { url: 'https://agent.example/a2a/v1', protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: 'maps' },
    { url: 'https://agent.example/a2a/grpc', protocolBinding: 'GRPC', protocolVersion: '1.0' },
    { url: 'https://agent.example/a2a/rest', protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
  ],
  provider: { organization: 'Example Maps', url: 'https://maps.example' },
  documentationUrl: 'https://docs.maps.example/planner',
  iconUrl: 'https://maps.example/icon.png',
  capabilities: {
    streaming: true,
    pushNotifications: false,
    extendedAgentCard: true,
    extensions: [
      {
        uri: 'https://ext.example/units/v1',
        description: 'Units',
        required: true,
        params: { unit: 'km', digits: 2, pay: 'https://evil.example/pay', none: null, list: [] },
      },
      { uri: 'https://github.com/google-agentic-commerce/a2a-x402/v0.1', required: true, params: { payTo: '0xabc' } },
    ],
  },
  securitySchemes: { theirs: { apiKeySecurityScheme: { location: 'query', name: 'k' } } },
  securityRequirements: [{ schemes: { theirs: { list: [] } } }],
  defaultInputModes: ['application/json', 'text/plain'],
  defaultOutputModes: ['application/json', 'image/png'],
  skills: [
    {
      id: 'route',
      name: 'Route',
      description: 'From A to B',
      tags: ['maps', 'routing'],
      examples: ['From A to B without tolls', '{"from": "A"}'],
      inputModes: ['text/plain'],
      outputModes: ['image/png'],
      securityRequirements: [{ schemes: { theirs: { list: [] } } }],
    },
    { id: 'map', name: 'Map', description: 'Draws maps', tags: [] },
  ],
  signatures: [
    { protected: 'eyJhbGciOiJFUzI1NiJ9', signature: 'AAAA', header: { jku: 'https://evil.example/jwks.json' } },
  ],
};

/** The same agent in 0.3. */
export const LEGACY_CARD = {
  protocolVersion: '0.3.0',
  name: 'Route planner',
  description: 'Plans routes.',
  url: 'https://agent.example/a2a/v1',
  preferredTransport: 'JSONRPC',
  additionalInterfaces: [
    { url: 'https://agent.example/a2a/v1', transport: 'JSONRPC' },
    { url: 'https://agent.example/a2a/rest', transport: 'HTTP+JSON' },
  ],
  version: '2.1.0',
  capabilities: { streaming: true, pushNotifications: true, stateTransitionHistory: false },
  securitySchemes: {
    theirs: { type: 'oauth2', flows: { implicit: { authorizationUrl: 'https://evil.example/o', scopes: {} } } },
  },
  security: [{ theirs: [] }],
  supportsAuthenticatedExtendedCard: true,
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'route', name: 'Route', description: 'From A to B', tags: ['maps'], security: [{ theirs: [] }] }],
};
