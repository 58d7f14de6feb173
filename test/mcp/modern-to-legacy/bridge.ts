import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
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
import { classify, type Inbound } from '../../../src/mcp/wire/classify.ts';
import { toMcpError } from '../../../src/mcp/wire/errors-mcp.ts';
import { eventText } from '../../../src/foundation/wire/reply/event-reader.ts';
import { createHeldCalls, type HeldCalls, type HeldCallsOptions } from '../../../src/mcp/servers/held-calls.ts';
import { createModernToLegacy } from '../../../src/mcp/translators/modern-to-legacy.ts';
import { errorText } from '../../../src/gateway/json-rpc/message.ts';
import { META, MODERN } from '../../../src/mcp/wire/revisions.ts';
import { createSeals } from '../../../src/foundation/security/seals.ts';
import { createServers } from '../../../src/mcp/servers/servers.ts';
import type { Continued, McpResponse, McpRequest } from '../../../src/mcp/request/mcp-request.ts';
import {
  createUpstreamSessions,
  type UpstreamSessions,
  type UpstreamSessionsOptions,
} from '../../../src/mcp/servers/upstream-sessions.ts';
import { openEngine } from '../../support/engines.ts';
import { NOTHING_LEFT_TO_LUCK } from '../../support/nothing-left-to-luck.ts';

/**
 * The bridge behind a small route of HTTP, in front of one server, with real billing and real execution. Each tool
 * call costs 1,000 micro-USD.
 */
export interface Bridge {
  readonly url: string;
  readonly sessions: UpstreamSessions;
  readonly held: HeldCalls;
  /** How billed calls ended, in order: `tool: finish reason, micro-USD`. */
  readonly endings: readonly string[];
  /** Posts a modern request with its envelope and headers. */
  post(method: string, params?: object, options?: PostOptions): Promise<Reply>;
  /** Posts a body as it is. */
  raw(body: string, headers?: Record<string, string>, signal?: AbortSignal): Promise<Response>;
  /** Resolves once `holds` does, looked at after each call. */
  until(holds: () => boolean): Promise<void>;
  /** What the audit finds wrong, and locks that no pending call explains. */
  faults(): Promise<readonly unknown[]>;
  heldLocks(): Promise<number>;
}

export interface PostOptions {
  readonly capabilities?: object;
  readonly meta?: object;
  readonly account?: string;
  readonly accept?: string;
  readonly signal?: AbortSignal;
  readonly id?: number | string;
}

export interface Reply {
  readonly status: number;
  /** Messages of the events before the response. */
  readonly events: readonly Message[];
  readonly text: string;
  readonly message: Message;
}

export interface Message {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

export interface BridgeOptions {
  readonly sessions?: Partial<UpstreamSessionsOptions>;
  readonly held?: Partial<HeldCallsOptions>;
  readonly timeoutMs?: number;
  /** Another server, of another provider, that a call can go to. */
  readonly fallbackUrl?: string;
}

type McpFrame = Frame<McpResponse | null, Uint8Array>;

const RATES = parseRates({ call: 0.001 });
export const ACCOUNT = 'tollgate:local:alice';
export const OTHER_ACCOUNT = 'tollgate:local:bob';
const HELD = { name: 'test/bridge-held', text: "SELECT id FROM locks WHERE state = 'held'" };

export async function startBridge(serverUrl: string, options: BridgeOptions = {}): Promise<Bridge> {
  const now = Date.now;
  const engine = await openEngine('sqlite');
  const { database } = engine;
  const ledger = await createLedger({ database, now });
  const offer = toolOffer('acme', serverUrl);
  const offers = options.fallbackUrl === undefined ? [offer] : [offer, toolOffer('backup', options.fallbackUrl)];
  await createPriceBook(database).remember(
    offers.map(({ price, provider, service }) => ({ ...price, provider: provider.id, service })),
  );
  for (const account of [ACCOUNT, OTHER_ACCOUNT])
    await ledger.transfer({
      id: `credit ${account}`,
      from: treasuryOf('operator'),
      to: escrowOf(account),
      amount: parseUsd('10'),
      memo: '',
    });

  const observer = createCallObserver([], { now });
  const direct = createHttpUpstream({ headTimeoutMs: 10_000, idleTimeoutMs: 10_000, connectionsMax: 1_024 });
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
  const waiters = new Set<() => void>();
  const settled = () => {
    for (const poll of waiters) poll();
  };
  const bill = createBill<Call>({
    ledger,
    lockOf: (call) => lockOf(call, 1_000),
    feeBps: 0,
    drainMs: 20,
    drainBytes: 1024,
    refuse: refuseLock,
    receipt: () => null,
    onStarted: observer.started,
    onRefused: observer.failed,
    onResolved: (call, resolution) => {
      observer.resolved(call, resolution);
      const reason = String(resolution.end?.detail['finishReason'] ?? resolution.state);
      endings.push(`${call.operation}: ${reason}, ${resolution.settlement.charged}`);
      settled();
    },
  });
  const handlers = { billed: bill(execute), free: createFree(observer)(execute) };

  const replyBytesMax = 1024 * 1024;
  const sessions = createUpstreamSessions({ version: '1', replyBytesMax, ...options.sessions });
  const held = createHeldCalls({ nodeId: 'node-1', ...options.held });
  const seals = createSeals({ secret: Buffer.alloc(32, 1), ttlMs: 60_000, now });
  const translator = createModernToLegacy({ sessions, held, seals, replyBytesMax });
  const servers = createServers({ version: '1', replyBytesMax, now });

  function run(turn: McpRequest, gone: AbortSignal): AsyncIterable<McpFrame> {
    const billed = turn.message.method === 'tools/call';
    const adapter: GeneratedAdapter<McpResponse | null> = {
      async *startAttempt(at, send, signal, detached) {
        return yield* translator(turn, { offer: at, facts: await servers.facts(at, send), send, detached, signal });
      },
    };
    const call: Call<McpResponse | null, Uint8Array> = {
      id: turn.callId,
      primitive: 'tool',
      caller: turn.caller,
      requestId: turn.callId,
      service: offer.service,
      stream: turn.events,
      startedAt: now(),
      begunAt: now(),
      candidates: offers.map((one) => ({ offer: one, price: one.price, estimate: billed ? 1_000n : 0n })),
      adapter,
      operation: billed ? String(turn.message.params?.['name']) : null,
      free: billed ? null : turn.message.method,
      continues: billed ? (turn.continued?.callId ?? null) : null,
      parent: null,
      lendable: 0n,
      stickyKey: null,
      metadata: null,
      traceparent: null,
      timeoutMs: options.timeoutMs ?? 30_000,
      wantsReceipt: false,
    };
    // The stages between carry what the call's own adapter gives.
    return (billed ? handlers.billed : handlers.free)(call, gone) as AsyncIterable<McpFrame>;
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const header = (name: string) => (request.headers[name] as string | undefined) ?? null;
    const json = (status: number, text: string) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(text);
    if (!/^(?:127\.0\.0\.1|localhost)(?::\d+)?$/.test(header('host') ?? '')) return void json(403, '{}');
    if (request.method !== 'POST') return void json(405, '{}');
    const inbound: Inbound = classify(Buffer.concat(chunks).toString(), {
      version: header('mcp-protocol-version'),
      method: header('mcp-method'),
      name: header('mcp-name'),
      session: header('mcp-session-id'),
      accept: header('accept'),
    });
    if (inbound.kind === 'refused') return void json(inbound.status, errorText(inbound.idText, inbound.error));
    if (inbound.kind === 'modern-notification') return void response.writeHead(202).end();
    if (inbound.kind !== 'modern' && inbound.kind !== 'bare') return void json(400, '{}');
    const { message } = inbound;
    const caller: Caller = { account: header('x-account') ?? ACCOUNT, key: null, wallet: null };
    const state = message.params?.['requestState'];
    const continued = state === undefined ? null : (seals.open(caller.account, String(state)) as Continued | null);
    if (state !== undefined && continued === null)
      return void json(200, errorText(message.idText, { code: -32_602, message: 'not a requestState of ours' }));
    const turn: McpRequest = {
      message,
      client: inbound.kind,
      caller,
      callId: newCallId(),
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
      events: inbound.acceptsEvents,
      capabilities: inbound.kind === 'modern' ? inbound.capabilities : {},
      paramHeaders: {},
      session: null,
      continued,
      toClient: (text) => text,
    };
    const gone = new AbortController();
    response.on('close', () => gone.abort(new Error('the client is gone')));
    try {
      for await (const frame of run(turn, gone.signal)) {
        if (frame.type === 'data') {
          if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' });
          response.write(frame.data);
        }
        if (frame.type !== 'settled') continue;
        const { text = '{}', status = 200 } = frame.result ?? {};
        if (response.headersSent) response.end(eventText(text));
        else json(status, text);
      }
    } catch (error) {
      const { status, text } = toMcpError(error, message.idText);
      if (!(error instanceof Error && error.name === 'GatewayError')) endings.push(String(error));
      if (response.headersSent) response.end(eventText(text));
      else json(status, text);
    }
    settled();
  }

  const http = createServer((request, response) => void answer(request, response));
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`;
  onTestFinished(async () => {
    http.closeAllConnections();
    http.close();
    held.close();
    await sessions.close();
    await upstream.close();
    await ledger.close();
    await engine.dispose();
  });

  const raw: Bridge['raw'] = (body, headers = {}, signal) =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      body,
      signal: signal ?? null,
    });
  let lastId = 0;
  return {
    url,
    sessions,
    held,
    endings,
    raw,
    async post(
      method,
      params = {},
      { capabilities = {}, meta = {}, account = ACCOUNT, accept, signal, id = lastId++ } = {},
    ) {
      const envelope = { [META.version]: MODERN, [META.capabilities]: capabilities, ...meta };
      const body = JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: envelope } });
      const name = (params as { name?: string; uri?: string }).name ?? (params as { uri?: string }).uri;
      const headers = {
        'mcp-protocol-version': MODERN,
        'mcp-method': method,
        'x-account': account,
        ...(name === undefined ? {} : { 'mcp-name': name }),
        ...(accept === undefined ? {} : { accept }),
      };
      return toReply(await raw(body, headers, signal));
    },
    until: (holds) =>
      new Promise((resolve) => {
        const poll = () => {
          if (!holds()) return;
          waiters.delete(poll);
          resolve();
        };
        waiters.add(poll);
        poll();
      }),
    async faults() {
      return (await audit(database, { now })).checks.filter(({ ok }) => !ok);
    },
    async heldLocks() {
      return (await database.query(HELD)).length;
    },
  };
}

export async function toReply(response: Response): Promise<Reply> {
  const body = await response.text();
  const streamed = response.headers.get('content-type') === 'text/event-stream';
  const texts = streamed ? [...body.matchAll(/^data: (.*)$/gm)].map((match) => match[1]!) : [body];
  const messages = texts.map((text) => JSON.parse(text) as Message);
  return { status: response.status, events: messages.slice(0, -1), text: texts.at(-1)!, message: messages.at(-1)! };
}

function toolOffer(provider: string, baseUrl: string): Offer {
  return {
    id: `tool/${provider}-key:acme/tools`,
    service: 'acme/tools',
    primitive: 'tool',
    provider: { id: `${provider}-key`, name: provider },
    price: { id: priceId(`${provider}-key`, 'acme/tools', RATES), rates: RATES },
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
