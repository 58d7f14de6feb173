import { randomUUID } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { audit, createBill, createLedger, createPriceBook } from '#billing/compose';
import { escrowOf, treasuryOf } from '#billing';
import { parseRates, parseUsd, priceId, type Frame } from '#billing/amounts';
import { createExecute, createFree, createRetryBudget, createRouter, lockOf } from '#call/compose';
import { newCallId, type Call, type GeneratedAdapter } from '#call';
import { createHealth, type Offer } from '#catalog';
import type { Caller } from '#accounts';
import { createHttpUpstream, createUpstream } from '#network';
import { createCallObserver } from '#observe';
import { refuseLock } from '../../../src/gateway/call/lock-payments.ts';
import { createClientRequests, type ClientRequests } from '../../../src/mcp/request/client-requests.ts';
import { createLegacyToModern, type LegacyToModern } from '../../../src/mcp/translators/legacy-to-modern.ts';
import { initializeResult } from '../../../src/mcp/request/legacy-to-modern-text.ts';
import { parseMessage, type RequestMessage } from '../../../src/gateway/json-rpc/message.ts';
import { createServers } from '../../../src/mcp/servers/servers.ts';
import type {
  LegacySession,
  McpEnd,
  McpResponse,
  ServerPlace,
  McpRequest,
} from '../../../src/mcp/request/mcp-request.ts';
import { openEngine } from '../../support/engines.ts';
import { NOTHING_LEFT_TO_LUCK } from '../../support/nothing-left-to-luck.ts';

/** The bridge in front of one modern server, with real billing, real execution and real sockets behind it. */
export interface BridgeWorld {
  readonly bridge: LegacyToModern;
  readonly clientRequests: ClientRequests;
  readonly offer: Offer;
  /** Input schemas of tools, by name. */
  readonly schemas: Map<string, unknown>;
  session(initialize?: InitializeParams): LegacySession;
  /** The InitializeResult for a client, from what the server tells of itself. */
  initialize(requested: string | null): Promise<string>;
  /**
   * Runs a request of a session as one call. `events`: those that were given out, each as its message; `onEvent`
   * hears of them at once.
   */
  ask(session: LegacySession, message: string | object, options?: AskOptions): Promise<Answer>;
  /** Listens as a GET does, until `signal` aborts or the stream ends. */
  listen(
    session: LegacySession,
    onMessage: (message: string) => void,
    signal: AbortSignal,
    onOpen?: () => void,
  ): Promise<McpEnd | null>;
  /** How calls ended, in order: `operation: finish reason, micro-USD`. */
  readonly endings: readonly string[];
  /** What the audit finds wrong, and locks that are still held. */
  faults(): Promise<readonly unknown[]>;
}

export interface InitializeParams {
  readonly protocolVersion?: string;
  readonly capabilities?: object;
  readonly clientInfo?: object;
}

export interface AskOptions {
  /** Default true. */
  readonly events?: boolean;
  readonly onEvent?: (message: string) => void;
  readonly gone?: AbortSignal;
  readonly toClient?: (text: string) => string;
  readonly timeoutMs?: number;
}

export interface Answer {
  readonly events: readonly string[];
  /** The response; null where there is none. */
  readonly text: string | null;
  readonly status: number;
  /** Micro-USD. */
  readonly charged: bigint;
}

type McpFrame = Frame<McpResponse | null, Uint8Array>;

const RATES = parseRates({ call: 0.001 });
const CALLER: Caller = { account: 'tollgate:local:bridge', key: null, wallet: null };
/** A comment begins with it. */
const COLON = 0x3a;
const HELD = { name: 'test/bridge-held', text: "SELECT id FROM locks WHERE state = 'held'" };

/** Each billed call costs 1,000 micro-USD. */
export async function startBridge(
  serverUrl: string,
  options: { readonly answerMs?: number; readonly replyBytesMax?: number; readonly cancelGraceMs?: number } = {},
): Promise<BridgeWorld> {
  const now = Date.now;
  const engine = await openEngine('sqlite');
  const { database } = engine;
  const ledger = await createLedger({ database, now });
  const offer = toolOffer(serverUrl);
  await createPriceBook(database).remember([{ ...offer.price, provider: offer.provider.id, service: offer.service }]);
  await ledger.transfer({
    id: 'credit',
    from: treasuryOf('operator'),
    to: escrowOf(CALLER.account),
    amount: parseUsd('10'),
    memo: '',
  });

  const observer = createCallObserver([], { now });
  const direct = createHttpUpstream({ headTimeoutMs: 10_000, idleTimeoutMs: 10_000, connectionsMax: 64 });
  const tunnel = {
    send() {
      throw new Error('there are no tunnels');
    },
    close: async () => {},
  };
  const upstream = createUpstream({ direct, tunnel });
  const health = createHealth({ now, cooldownMs: 1 });
  const router = createRouter({ health, random: NOTHING_LEFT_TO_LUCK.random, attemptsMax: 3 });
  const execute = createExecute({ upstream, health, router, retryBudget: createRetryBudget({ now }), observer, now });
  const endings: string[] = [];
  const bill = createBill<Call>({
    ledger,
    lockOf: (call) => lockOf(call, 1_000),
    feeBps: 0,
    drainMs: 50,
    drainBytes: 1024,
    refuse: refuseLock,
    receipt: () => null,
    onStarted: observer.started,
    onRefused: observer.failed,
    onResolved: (call, resolution) => {
      observer.resolved(call, resolution);
      const reason = String(resolution.end?.detail['finishReason'] ?? resolution.state);
      endings.push(`${call.operation}: ${reason}, ${resolution.settlement.charged}`);
    },
  });
  const handlers = { billed: bill(execute), free: createFree(observer)(execute) };

  const replyBytesMax = options.replyBytesMax ?? 1024 * 1024;
  const clientRequests = createClientRequests(options.answerMs === undefined ? {} : { timeoutMs: options.answerMs });
  const schemas = new Map<string, unknown>();
  const bridge = createLegacyToModern({
    clientRequests,
    schemaOf: (_offer, tool) => schemas.get(tool) ?? null,
    replyBytesMax,
    ...(options.cancelGraceMs === undefined ? {} : { cancelGraceMs: options.cancelGraceMs }),
  });
  const servers = createServers({ version: '1', replyBytesMax, now });

  function run(
    startAttempt: (place: ServerPlace, callId: string) => AsyncGenerator<Uint8Array, McpEnd, undefined>,
    as: Pick<Call, 'free' | 'operation'>,
    gone: AbortSignal,
    timeoutMs = 30_000,
  ): AsyncIterable<McpFrame> {
    const id = newCallId();
    const adapter: GeneratedAdapter<McpResponse | null> = {
      async *startAttempt(at, send, signal, detached) {
        const facts = await servers.facts(at, send);
        return yield* startAttempt({ offer: at, facts, send, detached, signal }, id);
      },
    };
    const call: Call<McpResponse | null, Uint8Array> = {
      id,
      primitive: 'tool',
      caller: CALLER,
      requestId: id,
      service: offer.service,
      stream: true,
      startedAt: now(),
      begunAt: now(),
      candidates: [{ offer, price: offer.price, estimate: 1_000n }],
      adapter,
      ...as,
      continues: null,
      parent: null,
      lendable: 0n,
      stickyKey: null,
      metadata: null,
      traceparent: null,
      timeoutMs,
      wantsReceipt: false,
    };
    // The stages between carry what the call's own adapter gives.
    return (as.free === null ? handlers.billed : handlers.free)(call, gone) as AsyncIterable<McpFrame>;
  }

  async function read(
    frames: AsyncIterable<McpFrame>,
    onEvent: (message: string) => void,
    onComment = () => {},
  ): Promise<Answer> {
    const events: string[] = [];
    for await (const frame of frames) {
      if (frame.type === 'data' && frame.data[0] === COLON) onComment();
      else if (frame.type === 'data') {
        const message = messageOf(frame.data);
        events.push(message);
        onEvent(message);
      }
      if (frame.type !== 'settled') continue;
      const { text = null, status = 0 } = frame.result ?? {};
      return { events, text, status, charged: frame.settlement.charged };
    }
    return { events, text: null, status: 0, charged: 0n };
  }

  const never = new AbortController().signal;
  const world: BridgeWorld = {
    bridge,
    clientRequests,
    offer,
    schemas,
    endings,
    session: (params = {}) => newSession(offer, params),
    async initialize(requested) {
      const frames = run(
        // oxlint-disable-next-line require-yield -- the answer is all there is
        async function* initialize({ facts }) {
          return {
            usage: null,
            outcome: 'free',
            estimated: false,
            finishReason: null,
            flags: [],
            result: { text: initializeResult(facts, requested), status: 200 },
          };
        },
        { free: 'initialize', operation: null },
        never,
      );
      return (await read(frames, () => {})).text!;
    },
    ask(
      session,
      message,
      { events = true, onEvent = () => {}, gone = never, toClient = (text: string) => text, timeoutMs } = {},
    ) {
      const request = parseMessage(
        typeof message === 'string' ? message : JSON.stringify({ jsonrpc: '2.0', ...message }),
      ) as RequestMessage;
      const billed = request.method === 'tools/call';
      const turn: Omit<McpRequest, 'callId'> = {
        message: request,
        client: 'legacy',
        caller: CALLER,
        service: offer.service,
        requestId: 'test',
        target: offer.service,
        rule: { billing: 'billed', answered: 'upstream' },
        traceparent: null,
        wantsReceipt: false,
        idempotencyKey: null,
        cap: null,
        quote: null,
        payment: null,
        elicitationAction: null,
        events,
        capabilities: session.clientCapabilities,
        paramHeaders: {},
        session,
        continued: null,
        toClient,
      };
      const as = { free: billed ? null : request.method, operation: billed ? String(request.params?.['name']) : null };
      return read(
        run((place, callId) => bridge.translator({ ...turn, callId }, place), as, gone, timeoutMs),
        onEvent,
      );
    },
    async listen(session, onMessage, signal, onOpen) {
      const ended: { end: McpEnd | null } = { end: null };
      const frames = run(
        async function* listen(place) {
          ended.end = yield* bridge.listenModern(session, place);
          return ended.end;
        },
        { free: 'subscriptions/listen', operation: null },
        signal,
      );
      await read(frames, onMessage, onOpen);
      return ended.end;
    },
    async faults() {
      const { checks } = await audit(database, { now });
      return [...checks.filter(({ ok }) => !ok), ...(await database.query(HELD))];
    },
  };
  onTestFinished(async () => {
    await upstream.close();
    await ledger.close();
    await engine.dispose();
  });
  return world;
}

/** The message of an event. */
export function messageOf(event: Uint8Array): string {
  const text = Buffer.from(event).toString();
  const match = /^event: message\ndata: (.*)\n\n$/.exec(text);
  if (!match) throw new Error(`no event with one message: ${text}`);
  return match[1]!;
}

function newSession(offer: Offer, params: InitializeParams): LegacySession {
  const { protocolVersion = '2025-11-25', capabilities = {}, clientInfo = { name: 'test', version: '1.0' } } = params;
  return {
    id: randomUUID(),
    account: CALLER.account,
    service: offer.service,
    offer,
    era: 'modern',
    revision: protocolVersion,
    initialize: JSON.stringify({
      jsonrpc: '2.0',
      id: 0,
      method: 'initialize',
      params: { protocolVersion, capabilities, clientInfo },
    }),
    clientCapabilities: capabilities as Readonly<Record<string, unknown>>,
    openedAt: 0,
    upstreamId: null,
    logLevel: null,
  };
}

function toolOffer(baseUrl: string): Offer {
  return {
    id: 'tool/acme-key:acme/tools',
    service: 'acme/tools',
    primitive: 'tool',
    provider: { id: 'acme-key', name: 'acme' },
    price: { id: priceId('acme-key', 'acme/tools', RATES), rates: RATES },
    variants: {},
    priceCap: null,
    endpoint: { kind: 'direct', baseUrl, headers: { authorization: 'Bearer provider-secret' } },
    displayName: 'tools',
    description: '',
    createdAt: 0,
    model: null,
    agent: null,
    media: null,
  };
}
