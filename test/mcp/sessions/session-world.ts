import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import type { Database } from '#store';
import { createKeepAlive, createServer } from '#http';
import { GatewayError } from '#errors';
import { audit, createBill, createLedger, createPriceBook } from '#billing/compose';
import { escrowOf, treasuryOf } from '#billing';
import { parseRates, parseUsd, priceId } from '#billing/amounts';
import type { Config } from '#config';
import {
  createArrivals,
  createExecute,
  createFree,
  createIdempotency,
  createPipeline,
  createRetryBudget,
  createRouter,
  lockOf,
} from '#call/compose';
import type { Call } from '#call';
import { createCatalog, createHealth, type Offer } from '#catalog';
import { createStreamQuota } from '#limits';
import { NO_PAYMENTS } from '#payments';
import { createHttpUpstream, createUpstream } from '#network';
import { createSessionStore } from '#mcp';
import { createCallObserver } from '#observe';
import { createLocalLimiter } from '../../../src/server/limits/rate-limiter.ts';
import { refuseLock } from '../../../src/gateway/call/lock-payments.ts';
import { createAnswerCall } from '../../../src/mcp/call/answer-call.ts';
import { createClientRequests } from '../../../src/mcp/request/client-requests.ts';
import { createFreeRequest } from '../../../src/mcp/request/free-call.ts';
import { createLegacyToLegacy } from '../../../src/mcp/translators/legacy-to-legacy.ts';
import { createLegacyToModern } from '../../../src/mcp/translators/legacy-to-modern.ts';
import { initializeResult } from '../../../src/mcp/request/legacy-to-modern-text.ts';
import { createListen } from '../../../src/mcp/http/listen.ts';
import { createReadPaid } from '../../../src/mcp/request/paid-request.ts';
import { createReplays } from '../../../src/mcp/call/replays.ts';
import { mcpRoutes } from '../../../src/mcp/http/routes.ts';
import { createRunRequest } from '../../../src/mcp/call/request-call.ts';
import { createServers } from '../../../src/mcp/servers/servers.ts';
import { createServiceTransport } from '../../../src/mcp/http/session-messages.ts';
import { createCancelNotes } from '../../../src/mcp/request/cancellation.ts';
import { createSessions } from '../../../src/mcp/sessions/sessions.ts';
import { LIMITS } from '../../openai/support/gateway.ts';
import { openTestDatabase } from '../../gateway/test-database.ts';
import { NO_TASKS } from '../../support/no-tasks.ts';
import { NOTHING_LEFT_TO_LUCK } from '../../support/nothing-left-to-luck.ts';

export interface WorldOptions {
  /** Of the one MCP server behind it. */
  readonly url: string;
  readonly mcp?: Partial<Config['mcp']>;
  readonly drainMs?: number;
  readonly cancelGraceMs?: number;
  readonly callTimeoutMs?: number;
  readonly replyBytesMax?: number;
  readonly listensMax?: number;
  readonly listensMs?: number;
  /** The clock stands but for what the test adds. */
  readonly standing?: boolean;
}

const SERVICE = 'acme/tools';
export const PRICE = 1_000n;
const HELD = { name: 'test/session-locks-held', text: "SELECT id FROM locks WHERE state = 'held'" };
const ROWS = { name: 'test/session-rows', text: 'SELECT id FROM sessions' };

/**
 * Legacy sessions in front of one server, with a real database, ledger, pipeline and sockets. An account is its own
 * key: `Bearer alice`. Every call of a tool costs PRICE. Gateways share the database and the clock.
 */
export async function startWorld(options: WorldOptions) {
  const clock = { ahead: 0 };
  const startedAt = Date.now();
  const now = () => (options.standing ? startedAt : Date.now()) + clock.ahead;
  const database = await openTestDatabase('sqlite');
  const ledger = await createLedger({ database, now });
  onTestFinished(() => ledger.close());
  const offer = toolOffer(options.url);
  await createPriceBook(database).remember([{ ...offer.price, provider: offer.provider.id, service: offer.service }]);
  for (const name of ['alice', 'bob'])
    await ledger.transfer({
      id: `credit ${name}`,
      from: treasuryOf('operator'),
      to: escrowOf(`tollgate:local:${name}`),
      amount: parseUsd('10'),
      memo: '',
    });

  const world = {
    clock,
    database,
    offer,
    gateway: () => startGateway(options, { now, database, ledger, offer }),
    rows: async () => (await database.query(ROWS)).length,
    /** What the audit finds wrong, and locks that are held. */
    async faults(): Promise<readonly unknown[]> {
      return [...(await audit(database, { now })).checks.filter((check) => !check.ok), ...(await database.query(HELD))];
    },
    async charged(name: string): Promise<bigint> {
      return parseUsd('10') - (await ledger.balance(escrowOf(`tollgate:local:${name}`)))!.available;
    },
  };
  return world;
}

export type World = Awaited<ReturnType<typeof startWorld>>;
export type TestGateway = Awaited<ReturnType<typeof startGateway>>;

async function startGateway(
  options: WorldOptions,
  {
    now,
    database,
    ledger,
    offer,
  }: { now: () => number; database: Database; ledger: Awaited<ReturnType<typeof createLedger>>; offer: Offer },
) {
  const observer = createCallObserver([], { now });
  const direct = createHttpUpstream({ headTimeoutMs: 10_000, idleTimeoutMs: 10_000, connectionsMax: 256 });
  const tunnel = {
    send() {
      throw new Error('there are no tunnels');
    },
    close: async () => {},
  };
  const upstream = createUpstream({ direct, tunnel });
  const health = createHealth({ now, cooldownMs: 0 });
  const router = createRouter({ health, random: NOTHING_LEFT_TO_LUCK.random, attemptsMax: 3 });
  const catalog = createCatalog();
  catalog.replace('test', [offer]);
  const execute = createExecute({ upstream, health, router, retryBudget: createRetryBudget({ now }), observer, now });
  const endings: string[] = [];
  const bill = createBill<Call>({
    ledger,
    lockOf: (call) => lockOf(call, 1_000),
    feeBps: 0,
    drainMs: options.drainMs ?? 50,
    drainBytes: 1024 * 1024,
    refuse: refuseLock,
    receipt: () => null,
    onStarted: observer.started,
    onRefused: observer.failed,
    onResolved: (call, resolution) => {
      observer.resolved(call, resolution);
      endings.push(
        `${call.operation}: ${String(resolution.end?.detail['finishReason'] ?? resolution.state)}, ${resolution.settlement.charged}`,
      );
    },
  });
  const pipeline = createPipeline({
    authenticate(headers) {
      const name = /^Bearer (\w+)$/.exec(headers.authorization ?? '')?.[1];
      if (name === undefined) throw new GatewayError('unauthorized', 'Missing API key');
      // `Bearer alice_one` is a restricted key of alice.
      const [account, of] = name.split('_') as [string, string?];
      const key = of === undefined ? null : { hash: of, label: of, development: false, access: null };
      return { account: `tollgate:local:${account}`, key: key && { ...key, restricted: true }, wallet: null };
    },
    limiter: createLocalLimiter({ now }),
    policy: () => ({ requestsPerMinute: 1e9, burst: 1e9, tokensPerMinute: 1e12 }),
    sharedPolicy: () => null,
    countPolicy: () => {
      throw new Error('nobody counts tokens here');
    },
    newKeyPolicy: () => {
      throw new Error('nobody makes keys here');
    },
    onRateLimited: () => {},
    catalog,
    router,
    health,
    arrivals: createArrivals({ present: () => true, onReturned: () => {}, waitMs: 0 }),
    attemptsMax: 3,
    callTimeoutMs: options.callTimeoutMs ?? 30_000,
    billed: bill(execute),
    unbilled: createFree(observer)(execute),
    observer,
    now,
    elapsed: now,
  });

  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  const replyBytesMax = options.replyBytesMax ?? 1024 * 1024;
  const servers = createServers({ version: '1', replyBytesMax, now });
  const sessions = createSessions({
    store: createSessionStore(database, { now }),
    config: { sessionsMax: 100, sessionsInMemoryMax: 20_000, sessionIdleMs: 1_800_000, ...options.mcp },
    offerOf: (id) => (id === offer.id ? offer : null),
    initializeResult,
    freeRequest: createFreeRequest(pipeline),
    now,
    onError,
  });
  const cancels = createCancelNotes({ store: createSessionStore(database, { now }), now, onError });
  const clientRequests = createClientRequests();
  const bridge = createLegacyToModern({ clientRequests, cancels, schemaOf: () => null, replyBytesMax });
  const raw = createLegacyToLegacy({
    replyBytesMax,
    renew: sessions.renew,
    hasEnded: sessions.hasEnded,
    cancels,
    cancelGraceMs: options.cancelGraceMs ?? 50,
  });
  const listens = createStreamQuota({
    max: options.listensMax ?? 32,
    ...(options.listensMs === undefined ? {} : { lastsMs: options.listensMs }),
  });
  const listen = createListen({
    places: listens,
    bytesMax: replyBytesMax,
    renew: sessions.renew,
    listenModern: bridge.listenModern,
  });
  const replays = createReplays({ now });
  const none = () => {
    throw new Error('there are only sessions here');
  };
  const idempotency = createIdempotency(database, { now, runningTtlMs: 60_000 });
  const runRequest = createRunRequest({
    answerCall: createAnswerCall({
      pipeline,
      paid: { idempotency, payments: NO_PAYMENTS },
      onError,
    }),
    keepTask: { tasks: NO_TASKS, ttlMs: 0 },
    servers,
    translators: {
      modern: { modern: none, legacy: none },
      bare: { modern: none, legacy: none },
      legacy: { modern: bridge.translator, legacy: raw.translator },
    },
    schemaOf: () => null,
    listingOf: () => null,
    admitted: (offers) => offers,
    refusal: () => null,
    unlistedTool: async () => null,
    decorate: (result) => result,
  });
  const keepAlive = createKeepAlive(NOTHING_LEFT_TO_LUCK.keepAliveMs);
  const door = createServiceTransport({
    pipeline,
    sessions,
    listen,
    replays,
    servers,
    runRequest,
    admitted: (offers) => offers,
    readPaid: createReadPaid(NO_PAYMENTS),
    raw,
    bridge,
    cancels,
    clientRequests,
    receipts: 'on-request',
    keepAlive,
    onError,
  });
  const server = createServer({ limits: LIMITS, onError });
  await server.register(
    mcpRoutes({
      keepAlive,
      admit: pipeline.admit,
      count: pipeline.count,
      guard: () => null,
      challenge: () => null,
      stateless: none,
      legacy: door,
      limits: LIMITS,
      onError,
    }),
  );
  await server.listen({ host: '127.0.0.1', port: 0 });
  const { port } = server.server.address() as AddressInfo;
  let stopped = false;
  const stop = async () => {
    if (stopped) return;
    stopped = true;
    listens.drain();
    await server.close();
    sessions.close();
    cancels.close();
    await upstream.close();
  };
  onTestFinished(async () => {
    const stopping = stop();
    // A client of Node 24 keeps a connection for 73 seconds that its server does not take for idle.
    server.server.closeAllConnections();
    await stopping;
  });
  return {
    url: `http://127.0.0.1:${port}/mcp/${SERVICE}`,
    sessions,
    listens,
    replays,
    /** How billed calls ended, in order: `tool: finish reason, micro-USD`. */
    endings,
    errors,
    inFlight: pipeline.inFlight,
    /** Failures that were counted against the provider. */
    failures: () => health.stats(offer).failures,
    stop,
  };
}

function toolOffer(url: string): Offer {
  const provider = { id: 'acme-key', name: 'acme' };
  const rates = parseRates({ call: 0.001 });
  return {
    id: `tool/${provider.id}:${SERVICE}`,
    service: SERVICE,
    primitive: 'tool',
    provider,
    price: { id: priceId(provider.id, SERVICE, rates), rates },
    variants: {},
    priceCap: null,
    endpoint: { kind: 'direct', baseUrl: url, headers: { authorization: 'Bearer providers-own' } },
    displayName: SERVICE,
    description: '',
    createdAt: 0,
    model: null,
    agent: null,
    media: null,
  };
}

/** One message to a session, as a client posts it. */
export function post(
  url: string,
  account: string,
  session: string | null,
  message: object | string,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${account}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(session === null ? {} : { 'mcp-session-id': session }),
      ...headers,
    },
    body: typeof message === 'string' ? message : JSON.stringify(message),
  });
}

export const INITIALIZE = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: {
    protocolVersion: '2025-11-25',
    capabilities: { sampling: {}, elicitation: {}, roots: {} },
    clientInfo: { name: 'test', version: '1' },
  },
};

/** Opens a session; its id. */
export async function open(url: string, account: string, message: object = INITIALIZE): Promise<string> {
  const reply = await post(url, account, null, message);
  const text = await reply.text();
  const id = reply.headers.get('mcp-session-id');
  if (id === null) throw new Error(`no session: ${reply.status} ${text}`);
  return id;
}

/** The JSON-RPC messages of a reply, JSON or events. */
export async function messagesOf(reply: Response): Promise<Record<string, unknown>[]> {
  const text = await reply.text();
  if (!reply.headers.get('content-type')?.includes('event-stream'))
    return text === '' ? [] : [JSON.parse(text) as Record<string, unknown>];
  return [...text.matchAll(/^data: ?(\{.*)$/gm)].map(([, data]) => JSON.parse(data!) as Record<string, unknown>);
}
