import { generateKeyPairSync } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import type { Database } from '#store';
import { GatewayError } from '#errors';
import { audit, createBill, createLedger, createPriceBook, createReceiptSigner } from '#billing/compose';
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
import { createCatalog, createHealth, createToolPins, type Offer } from '#catalog';
import { createServer } from '#http';
import { type CallEvent, type ContentResult, contentResultOf, type Part, partOf, type TargetRequest } from '#bridge';
import { NO_PAYMENTS } from '#payments';
import type { Caller } from '#accounts';
import { accessOf } from '../../../../src/server/accounts/access.ts';
import { createHttpUpstream, createUpstream } from '#network';
import { createSessionStore } from '#mcp';
import { createCallObserver } from '#observe';
import { receiptOfCall } from '../../../../src/gateway/call/billing.ts';
import { createLocalLimiter } from '../../../../src/server/limits/rate-limiter.ts';
import { refuseLock } from '../../../../src/gateway/call/lock-payments.ts';
import { createMcp } from '../../../../src/mcp/create-mcp.ts';
import { openTestDatabase } from '../../test-database.ts';
import { LIMITS } from '../../../openai/support/gateway.ts';
import { createLineTarget } from './line-target.ts';
import { NO_TASKS } from '../../../support/no-tasks.ts';
import { NOTHING_LEFT_TO_LUCK } from '../../../support/nothing-left-to-luck.ts';

/** A service of the world: USD of a call, and where it is served. */
export interface WorldService {
  readonly url: string;
  readonly perCall?: number;
  readonly description?: string;
}

export interface WorldOptions {
  readonly tools?: Readonly<Record<string, WorldService>>;
  readonly agents?: Readonly<Record<string, WorldService>>;
  readonly models?: Readonly<Record<string, WorldService>>;
  /** Keys that may use these services alone, by the name of their account. */
  readonly allowed?: Readonly<Record<string, readonly string[]>>;
  readonly requestsPerMinute?: number;
  readonly mcp?: Partial<Config['mcp']>;
  readonly replyBytesMax?: number;
}

const HELD = { name: 'test/bridge-locks-held', text: "SELECT id FROM locks WHERE state = 'held'" };
const PER_CALL = 0.001;

/**
 * Gateways of MCP in front of tools, agents and models, with a real database, ledger, pipeline and sockets. An
 * account is its own key: `Bearer alice`; `alice` and `bob` have 10 USD, everybody else has nothing.
 */
export async function startBridgeWorld(options: WorldOptions) {
  const now = () => Date.now();
  const database = await openTestDatabase('sqlite');
  const ledger = await createLedger({ database, now });
  onTestFinished(() => ledger.close());
  const offers = (['tool', 'agent', 'model'] as const).flatMap((primitive) =>
    Object.entries(options[`${primitive}s`] ?? {}).map(([name, service]) => toOffer(primitive, name, service)),
  );
  await createPriceBook(database).remember(
    offers.map(({ price, provider, service }) => ({ ...price, provider: provider.id, service })),
  );
  for (const name of ['alice', 'bob', ...Object.keys(options.allowed ?? {})])
    await ledger.transfer({
      id: `credit ${name}`,
      from: treasuryOf('operator'),
      to: escrowOf(accountOf(name)),
      amount: parseUsd('10'),
      memo: '',
    });
  const gateway = () => startGateway(options, { now, database, ledger, offers });
  return {
    ...(await gateway()),
    /** Another gateway on the same database. */
    gateway,
    /** What the audit finds wrong, and locks that are held. */
    async faults(): Promise<readonly unknown[]> {
      return [...(await audit(database, { now })).checks.filter((check) => !check.ok), ...(await database.query(HELD))];
    },
    /** Micro-USD. */
    async charged(name = 'alice'): Promise<bigint> {
      const { available, locked } = (await ledger.balance(escrowOf(accountOf(name))))!;
      return parseUsd('10') - available - locked;
    },
  };
}

export type BridgeWorld = Awaited<ReturnType<typeof startBridgeWorld>>;

interface Shared {
  readonly now: () => number;
  readonly database: Database;
  readonly ledger: Awaited<ReturnType<typeof createLedger>>;
  readonly offers: readonly Offer[];
}

async function startGateway(options: WorldOptions, { now, database, ledger, offers }: Shared) {
  const observer = createCallObserver([], { now });
  const tunnel = {
    send() {
      throw new Error('there are no tunnels');
    },
    close: async () => {},
  };
  const direct = createHttpUpstream({ headTimeoutMs: 10_000, idleTimeoutMs: 10_000, connectionsMax: 256 });
  const upstream = createUpstream({ direct, tunnel });
  const health = createHealth({ now, cooldownMs: 0 });
  const router = createRouter({ health, random: NOTHING_LEFT_TO_LUCK.random, attemptsMax: 3 });
  const catalog = createCatalog();
  catalog.replace('test', offers);
  const execute = createExecute({ upstream, health, router, retryBudget: createRetryBudget({ now }), observer, now });
  const signer = createReceiptSigner(generateKeyPairSync('ed25519').privateKey);
  const endings: string[] = [];
  const bill = createBill<Call>({
    ledger,
    lockOf: (call) => lockOf(call, 1_000),
    feeBps: 0,
    drainMs: 50,
    drainBytes: 1024 * 1024,
    refuse: refuseLock,
    receipt: (call, end, settlement) =>
      call.wantsReceipt ? signer.sign(receiptOfCall(call, end, settlement, now(), [])) : null,
    onStarted: observer.started,
    onRefused: observer.failed,
    onResolved(call, resolution) {
      observer.resolved(call, resolution);
      endings.push(
        `${call.primitive} ${call.service}: ${String(resolution.end?.detail['finishReason'] ?? resolution.state)}`,
      );
    },
  });
  const requestsPerMinute = options.requestsPerMinute ?? 1e9;
  const pipeline = createPipeline({
    authenticate(headers) {
      const name = /^Bearer (\w+)$/.exec(headers.authorization ?? '')?.[1];
      if (name === undefined) throw new GatewayError('unauthorized', 'Missing API key');
      return callerOf(name, options);
    },
    limiter: createLocalLimiter({ now }),
    policy: () => ({ requestsPerMinute, burst: 0, tokensPerMinute: 1e12 }),
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
    callTimeoutMs: 30_000,
    billed: bill(execute),
    unbilled: createFree(observer)(execute),
    observer,
    now,
    elapsed: now,
  });
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  const replyBytesMax = options.replyBytesMax ?? 1024 * 1024;
  const targets = { a2a: createLineTarget('agent', catalog), model: createLineTarget('model', catalog) };
  const mcp = createMcp({
    pipeline,
    catalog,
    targets: () => targets,
    idempotency: createIdempotency(database, { now, runningTtlMs: 60_000 }),
    sessions: createSessionStore(database, { now }),
    pins: createToolPins(database, { now }),
    tasks: NO_TASKS,
    receiptOf: () => Promise.resolve(null),
    onUnseen: () => {},
    onShared: () => {},
    present: () => true,
    networkOf: () => null,
    payments: NO_PAYMENTS,
    config: {
      limits: LIMITS,
      upstream: { replyBytesMax } as Config['upstream'],
      billing: { receipts: 'on-request', drainMs: 50 } as Config['billing'],
      tasks: { ttlMs: 86_400_000, retentionMs: 86_400_000, liveMax: 1_000, lookMsMax: 60_000 },
      mcp: { sessionsMax: 100, sessionsInMemoryMax: 20_000, sessionIdleMs: 1_800_000, ...options.mcp },
    },
    secret: Buffer.alloc(32, 1),
    version: '1',
    now,
    elapsed: now,
    random: NOTHING_LEFT_TO_LUCK.random,
    onUnlisted: () => {},
    guard: () => null,
    challenge: () => null,
    onError,
  });
  const server = createServer({ limits: LIMITS, onError });
  await server.register(mcp.routes);
  await server.register(mcp.routes, { prefix: '/api/v1' });
  await server.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(async () => {
    mcp.drain();
    await server.close();
    await mcp.close();
    await upstream.close();
  });

  /** Says something to a tool in parts, as a route of another protocol does. */
  async function say(name: string, ask: Partial<TargetRequest> | string, account = 'alice'): Promise<Said> {
    const turns = [{ role: 'user', parts: [{ kind: 'text', text: typeof ask === 'string' ? ask : '' }] }] as const;
    const whole: TargetRequest = {
      turns,
      arguments: null,
      contextId: null,
      taskId: null,
      maxTokens: null,
      stream: false,
      ...(typeof ask === 'string' ? {} : ask),
    };
    const context = { caller: callerOf(account, options), requestId: 'door', traceparent: null, wantsReceipt: false };
    const call = await pipeline.prepare(await mcp.target.toCall(name, whole, context));
    const events: CallEvent[] = [];
    for await (const frame of pipeline.run(call, new AbortController().signal)) {
      if (frame.type === 'data') events.push(...frame.data.events);
      if (frame.type === 'settled')
        return {
          parts: events.map(partOf).filter((part) => part !== null),
          progress: events.flatMap((event) => (event.type === 'progress' ? [event.text] : [])),
          end: contentResultOf(frame),
          charged: frame.settlement.charged,
        };
    }
    throw new Error('the call was not settled');
  }

  return {
    origin: `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`,
    mcp,
    say,
    /** How billed calls ended, in order: `primitive service: finish reason`. */
    endings,
    errors,
    inFlight: pipeline.inFlight,
    close: () => server.close(),
  };
}

export interface Said {
  readonly parts: readonly Part[];
  readonly progress: readonly (string | null)[];
  readonly end: ContentResult;
  readonly charged: bigint;
}

const accountOf = (name: string) => `tollgate:local:${name}`;

function callerOf(name: string, { allowed }: WorldOptions): Caller {
  const access = accessOf(allowed?.[name] ?? null);
  const key = access ? { hash: name, label: name, development: false, access } : null;
  return { account: accountOf(name), key, wallet: null };
}

function toOffer(
  primitive: 'tool' | 'agent' | 'model',
  service: string,
  { url, perCall = PER_CALL, description = '' }: WorldService,
): Offer {
  const provider = { id: `${primitive}-key`, name: 'acme' };
  const rates = parseRates({ call: perCall });
  return {
    id: `${primitive}/${provider.id}:${service}`,
    service,
    primitive,
    provider,
    price: { id: priceId(provider.id, service, rates), rates },
    variants: {},
    priceCap: null,
    endpoint: { kind: 'direct', baseUrl: url, headers: {} },
    displayName: `The ${service}`,
    description,
    createdAt: 0,
    model: null,
    agent: null,
    media: null,
  };
}
