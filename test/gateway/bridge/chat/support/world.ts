import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase } from '#store';
import { createOriginGuard } from '#security';
import { audit, createBill, createLedger, createPriceBook, createReceiptSigner } from '#billing/compose';
import { escrowOf, treasuryOf, type LockRecord } from '#billing';
import { parseUsd } from '#billing/amounts';
import { loadConfig } from '#config';
import {
  createArrivals,
  createExecute,
  createFree,
  createIdempotency,
  createPipeline,
  createRetryBudget,
  createRouter,
  createRuns,
  lockOf,
} from '#call/compose';
import type { Call } from '#call';
import { createCatalog, createHealth, createToolPins, offersFromConfig, type Catalog } from '#catalog';
import { createRatePolicies } from '#limits';
import { createServer } from '#http';
import {
  type CallEvent,
  type ContentResult,
  contentResultOf,
  type TargetRequest,
  type TargetAdapter,
  type TargetAdapters,
} from '#bridge';
import { NO_PAYMENTS } from '#payments';
import { createAttempts, createAuthenticator, createIdentity, createKeyStore, createSignIn } from '#auth';
import { createLimitsStore } from '#accounts';
import { localAccount } from '#accounts/names';
import { createHttpUpstream, pricesOf } from '#network';
import { createSessionStore } from '#mcp';
import { createCallObserver } from '#observe';
import { receiptOfCall } from '../../../../../src/gateway/call/billing.ts';
import type { Balance } from '../../../../../src/billing/ledger/ledger.ts';
import { createLocalLimiter } from '../../../../../src/server/limits/rate-limiter.ts';
import { refuseLock } from '../../../../../src/gateway/call/lock-payments.ts';
import { createMcp } from '../../../../../src/mcp/create-mcp.ts';
import { chatRoutes } from '../../../../../src/openai/routes/chat-routes.ts';
import { createModelTarget } from '../../../../../src/openai/model-target.ts';
import { NO_TASKS } from '../../../../support/no-tasks.ts';
import { NOTHING_LEFT_TO_LUCK } from '../../../../support/nothing-left-to-luck.ts';

/**
 * The chat route over the whole pipeline, a real database and real servers, with speakers of the test's own beside
 * those of the gateway.
 */
export interface World {
  /** `http://127.0.0.1:<port>/api/v1`. */
  readonly url: string;
  readonly key: string;
  readonly account: string;
  readonly catalog: Catalog;
  readonly targets: TargetAdapters;
  /**
   * Says something to a primitive as a route does, and runs the call to its end. `onHeard` is told of every event;
   * its client leaves when `gone` aborts.
   */
  say(
    target: TargetAdapter,
    name: string,
    ask: TargetRequest,
    gone?: AbortSignal,
    onHeard?: () => void,
  ): Promise<Heard>;
  /** What went wrong unseen by clients. */
  readonly errors: unknown[];
  balance(): Promise<Balance>;
  /** Resolves when no call holds a lock any more. */
  quiet(): Promise<void>;
  /** Waits for all locks, and returns what the audit finds wrong. */
  faults(): Promise<readonly unknown[]>;
  lock(id: string | null): Promise<LockRecord>;
  children(id: string | null): Promise<readonly LockRecord[]>;
  /** Ids of all calls that ever held a lock, in no order. */
  locks(): Promise<readonly string[]>;
  /** Another key of the account, for these services alone. */
  limitedKey(allowedServices: readonly string[]): Promise<string>;
  chat(body: unknown, headers?: Record<string, string>, signal?: AbortSignal): Promise<Response>;
  stop(): Promise<void>;
}

export interface Heard {
  readonly id: string;
  readonly events: readonly CallEvent[];
  readonly end: ContentResult;
  readonly charged: bigint;
}

export interface WorldOptions {
  /** `[[models]]`, `[[tools]]`, `[[agents]]` and sections. */
  readonly toml: string;
  /** Speaks for agents; default nobody does. */
  readonly agents?: TargetAdapter;
  /** USD of the account. */
  readonly credit?: string;
  /** Highest budget of a run without `max_cost`, USD. */
  readonly budgetMax?: string;
  readonly keepAliveMs?: number;
}

const NOBODY: TargetAdapter = {
  primitive: 'agent',
  has: () => false,
  list: () => [],
  toCall: () => Promise.reject(new Error('there are no agents here')),
};

export async function startWorld(options: WorldOptions): Promise<World> {
  const now = Date.now;
  const dataDir = await mkdtemp(join(tmpdir(), 'tollgate-world-'));
  const config = loadConfig({
    file: 'world.toml',
    text: options.toml,
    env: { TEST_UPSTREAM_KEY: 'upstream-secret-canary' },
    mode: 'production',
    overrides: { 'server.data_dir': dataDir, 'server.port': 0, 'server.host': '127.0.0.1' },
  });
  const errors: unknown[] = [];
  const onError = (error: unknown) => errors.push(error);
  const database = await openDatabase({ url: null, dataDir });
  const ledger = await createLedger({ database, now });
  const identity = createIdentity({ dataDir });
  const receipts = createReceiptSigner(identity.receiptKey.privateKey);
  const catalog = createCatalog();
  const offers = offersFromConfig(config.services, { providerId: identity.providerId, createdAt: now() });
  await createPriceBook(database).remember(pricesOf(offers));
  catalog.replace('config', offers);
  const keys = createKeyStore(database, { now });
  const attempts = createAttempts({ perMinute: config.signIn.failuresPerMinute, now });
  const signIn = await createSignIn({ ...config.signIn, chains: config.chains, attempts, now, elapsed: now });
  const authenticator = createAuthenticator({
    keys,
    limits: createLimitsStore(database, { now }),
    signIn,
    attempts,
    acceptDevelopmentKeys: false,
    now,
  });
  const policies = createRatePolicies(config.limits);
  const present = () => true;
  const health = createHealth({ now, cooldownMs: config.upstream.cooldownMs, present });
  const router = createRouter({ health, random: NOTHING_LEFT_TO_LUCK.random, ...config.upstream, now });
  const upstream = createHttpUpstream(config.upstream);
  const observer = createCallObserver([], { now });
  observer.readOperations(() => true);
  const graceMs = config.billing.drainMs;
  const arrivals = createArrivals({ present, onReturned: () => {}, waitMs: 0 });
  const bill = createBill<Call>({
    ledger,
    lockOf: (call) => lockOf(call, graceMs),
    feeBps: config.billing.feeBps,
    drainMs: config.billing.drainMs,
    drainBytes: config.billing.drainBytes,
    refuse: refuseLock,
    receipt: (call, end, settlement) =>
      call.wantsReceipt ? receipts.sign(receiptOfCall(call, end, settlement, now(), [])) : null,
    onStarted: observer.started,
    onRefused: observer.failed,
    onResolved(call, resolution) {
      observer.resolved(call, resolution);
      call.adapter.resolved?.(resolution.state);
    },
  });
  const execute = createExecute({ upstream, health, router, retryBudget: createRetryBudget({ now }), observer, now });
  const pipeline = createPipeline({
    authenticate: (headers, address) => authenticator.authenticate(headers, address),
    limiter: createLocalLimiter({ now }),
    policy: (caller) => policies.policyOf(caller),
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
    arrivals,
    attemptsMax: config.upstream.attemptsMax,
    callTimeoutMs: config.upstream.callTimeoutMs,
    billed: bill(execute),
    unbilled: createFree(observer)(execute),
    observer,
    now,
    elapsed: now,
  });
  const idempotency = createIdempotency(database, {
    now,
    runningTtlMs: config.upstream.callTimeoutMs + graceMs + 60_000,
  });
  const mcp = createMcp({
    pipeline,
    catalog,
    sessions: createSessionStore(database, { now }),
    pins: createToolPins(database, { now }),
    tasks: NO_TASKS,
    receiptOf: () => Promise.resolve(null),
    onUnseen: () => {},
    onShared: () => {},
    present,
    networkOf: () => null,
    random: NOTHING_LEFT_TO_LUCK.random,
    onUnlisted: () => {},
    idempotency,
    payments: NO_PAYMENTS,
    config,
    secret: identity.secret('mcp state'),
    version: '0.0.0',
    now,
    elapsed: now,
    onError,
    guard: createOriginGuard({ ...config, signInDomains: config.signIn.domains, bindHost: config.host }),
    challenge: () => null,
  });
  const targets: TargetAdapters = {
    a2a: options.agents ?? NOBODY,
    mcp: mcp.target,
    model: createModelTarget({ catalog, config, now }),
    image: NOBODY,
    video: NOBODY,
  };
  const server = createServer({ limits: config.limits, onError });
  await server.register(
    chatRoutes({
      pipeline,
      idempotency,
      config,
      targets: () => targets,
      toolLoop: {
        catalog,
        runs: createRuns({ ledger, now, graceMs }),
        toolsOf: mcp.toolsOf,
        budgetMax: parseUsd(options.budgetMax ?? '1'),
      },
      now,
      onError,
      keepAliveMs: options.keepAliveMs ?? NOTHING_LEFT_TO_LUCK.keepAliveMs,
    }),
    { prefix: '/api/v1' },
  );
  await server.listen({ host: '127.0.0.1', port: 0 });
  const url = `http://127.0.0.1:${(server.server.address() as AddressInfo).port}/api/v1`;
  const account = localAccount('tester');
  const credit = parseUsd(options.credit ?? '100');
  if (credit > 0n)
    await ledger.transfer({
      id: randomUUID(),
      from: treasuryOf('operator'),
      to: escrowOf(account),
      amount: credit,
      memo: '',
    });
  const { text: key } = (await keys.create({ account, label: 'test', kind: 'live' }))!;
  const held = { name: 'test/held', text: "SELECT id FROM locks WHERE state = 'held' LIMIT 1" };

  const world: World = {
    url,
    key,
    account,
    catalog,
    targets,
    async say(target, name, ask, gone = new AbortController().signal, onHeard = () => {}) {
      const caller = { account, key: null, wallet: null };
      const request = await target.toCall(name, ask, {
        caller,
        requestId: 'said',
        traceparent: null,
        wantsReceipt: false,
      });
      const call = await pipeline.prepare(request);
      const events: CallEvent[] = [];
      for await (const frame of pipeline.run(call, gone)) {
        if (frame.type === 'data') {
          events.push(...frame.data.events);
          onHeard();
        }
        if (frame.type === 'settled')
          return { id: call.id, events, end: contentResultOf(frame), charged: frame.settlement.charged };
      }
      throw new Error('a call ended without a settlement');
    },
    errors,
    balance: async () => (await ledger.balance(escrowOf(account))) ?? { available: 0n, locked: 0n },
    async quiet() {
      const until = performance.now() + 60_000;
      while ((await database.query(held)).length > 0) {
        if (performance.now() > until) throw new Error('a lock was not resolved within a minute');
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
    async faults() {
      await world.quiet();
      return (await audit(database, { now })).checks.filter((check) => !check.ok);
    },
    async lock(id) {
      const record = id === null ? null : await ledger.find(id);
      if (!record) throw new Error(`there is no lock ${id}`);
      return record;
    },
    children: (id) => ledger.children(id ?? ''),
    locks: async () =>
      (await database.query({ name: 'test/locks', text: 'SELECT id FROM locks' })).map((row) => row['id'] as string),
    limitedKey: async (allowedServices) =>
      (await keys.create({ account, label: 'limited', kind: 'live', allowedServices }))!.text,
    chat: (body, headers = {}, signal) =>
      fetch(`${url}/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
        ...(signal ? { signal } : {}),
      }),
    async stop() {
      server.server.closeAllConnections();
      await server.close();
      mcp.drain();
      await mcp.close();
      arrivals.close();
      await upstream.close();
      authenticator.close();
      await ledger.close();
      await database.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
  return world;
}
