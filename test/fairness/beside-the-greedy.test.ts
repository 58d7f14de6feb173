import { Agent } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { expectUnharmedInTurns } from '../support/bystander.ts';
import { ENGINES } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { startGateway, type Gateway } from '../support/gateway.ts';
import { startProvider, type TestProvider } from '../support/provider.ts';
import { startRawMcp, type RawMcp } from '../support/raw-mcp.ts';
import { ask, modelBlock, MODEL } from '../support/spine.ts';
import { crowd, post } from './support/crowd.ts';

// A greedy account asks for as much as its rate allows, again and again, also for what it has no more share of. A
// patient account does the same now and then, and waits no longer than it does alone.

/** Keys may be as fast as accounts: 40 requests a second, four times what an account may by default. */
const LIMITS = '[limits]\nrequests_per_minute = 2400\naccount_requests_per_minute = 2400\nburst = 100\n';
const WIDTH = 8;
const EVERY_MS = 40;
const POLL_MS = 20;
const CALLS = 80;
const SILENT = 'test/silent';

interface Part {
  readonly what: string;
  /** Path and body of what the greedy account asks for. */
  readonly greedy: readonly [path: string, body: object, headers?: Readonly<Record<string, string>>];
  /** What the patient account does, and whether it succeeded. */
  readonly patient: (at: Caller) => Promise<boolean>;
}

/** Posts JSON or gets, with the key of an account. */
interface Caller {
  post(path: string, body: object, headers?: Readonly<Record<string, string>>): Promise<Response>;
  get(path: string): Promise<Response>;
  end(path: string, headers: Readonly<Record<string, string>>): Promise<Response>;
}

const chat = ask('hello !tokens:5');
const kept = { model: MODEL, input: 'hello !tokens:5', store: true };
const inBackground = { model: MODEL, input: 'hello !tokens:5', background: true };
const quoted = { primitive: 'model', ...chat };
const ACCEPT = { accept: 'application/json, text/event-stream' };
const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};
const json = async <T>(response: Response) => (await response.json()) as T;

const PARTS: readonly Part[] = [
  {
    what: 'the ledger',
    greedy: ['/api/v1/chat/completions', chat],
    async patient(at) {
      const response = await at.post('/api/v1/chat/completions', chat);
      await response.arrayBuffer();
      return response.ok;
    },
  },
  {
    what: 'responses in the background',
    greedy: ['/api/v1/responses', { ...inBackground, model: SILENT }],
    async patient(at) {
      const { id } = await json<{ id: string }>(await at.post('/api/v1/responses', inBackground));
      for (;;) {
        const { status } = await json<{ status: string }>(await at.get(`/api/v1/responses/${id}`));
        if (status !== 'queued' && status !== 'in_progress') return status === 'completed';
        await pause(POLL_MS);
      }
    },
  },
  {
    what: 'kept responses',
    greedy: ['/api/v1/responses', kept],
    async patient(at) {
      const { id } = await json<{ id: string }>(await at.post('/api/v1/responses', kept));
      const found = await at.get(`/api/v1/responses/${id}`);
      await found.arrayBuffer();
      return found.ok;
    },
  },
  {
    what: 'quotes',
    greedy: ['/api/v1/quotes', quoted],
    async patient(at) {
      const { quote_id } = await json<{ quote_id: string }>(await at.post('/api/v1/quotes', quoted));
      const used = await at.post('/api/v1/chat/completions', chat, { 'x-quote-id': quote_id });
      await used.arrayBuffer();
      return used.ok;
    },
  },
  {
    what: 'MCP sessions',
    greedy: ['/mcp', initialize, ACCEPT],
    async patient(at) {
      const opened = await at.post('/mcp', initialize, ACCEPT);
      await opened.arrayBuffer();
      const session = opened.headers.get('mcp-session-id');
      if (session === null) return false;
      const list = { jsonrpc: '2.0', id: 2, method: 'tools/list' };
      const listed = await at.post('/mcp', list, { ...ACCEPT, 'mcp-session-id': session });
      const text = await listed.text();
      await (await at.end('/mcp', { 'mcp-session-id': session })).arrayBuffer();
      return listed.ok && text.includes('"tools"');
    },
  },
];

describe.each(ENGINES)('on %s', (engine) => {
  let provider: TestProvider;
  let silent: TestProvider;
  let tools: RawMcp;
  let gateway: Gateway;
  let drop = async () => {};
  const gate = Promise.withResolvers<void>();
  beforeAll(async () => {
    [provider, silent] = [await startProvider(), await startProvider()];
    silent.hold(gate.promise);
    tools = await startRawMcp(
      () => '{"resultType":"complete","content":[]}',
      ['{"name":"hour","inputSchema":{"type":"object"}}'],
    );
    const fresh = engine === 'postgres' ? await freshDatabase(inject('postgresUrl')) : null;
    if (fresh !== null) drop = fresh.drop;
    const toml =
      `${LIMITS}[responses]\naccount_count_max = 50\n[mcp]\nsessions_max = 10\nsessions_in_memory_max = 20\n` +
      `[[tools]]\nname = "kit"\nprovider_name = "Kit"\nendpoint = "${tools.url}"\n[tools.pricing]\nper_call = 0.001\n` +
      modelBlock({ provider: 'Quick', url: provider.url }) +
      modelBlock({ name: SILENT, provider: 'Silent', url: silent.url });
    gateway = await startGateway({
      toml,
      env: { TEST_UPSTREAM_KEY: 'upstream-secret-canary', TOLLGATE_IDENTITY_SEED: 'ab'.repeat(32) },
      ...(fresh === null ? {} : { databaseUrl: fresh.url }),
    });
  });
  afterAll(async () => {
    gate.resolve();
    silent.hold(null);
    try {
      expect(await gateway.admin('GET', '/audit')).toMatchObject({ data: { ok: true } });
    } finally {
      await gateway.stop();
      await Promise.all([provider.stop(), silent.stop(), tools.close()]);
      await drop();
    }
  });

  const callerOf = (key: string): Caller => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    return {
      post: (path, body, more = {}) =>
        fetch(gateway.baseUrl + path, { method: 'POST', headers: { ...headers, ...more }, body: JSON.stringify(body) }),
      get: (path) => fetch(gateway.baseUrl + path, { headers }),
      end: (path, more) =>
        fetch(gateway.baseUrl + path, { method: 'DELETE', headers: { authorization: headers.authorization, ...more } }),
    };
  };

  test.each(PARTS)('$what', async ({ what, greedy: [path, body, headers], patient }) => {
    const name = what.toLowerCase().replaceAll(' ', '-');
    const own = callerOf((await gateway.openAccount(`patient-${name}`, 10)).key);
    const call = () => patient(own);
    const { key } = await gateway.openAccount(`greedy-${name}`, 100);
    // The first calls make what all later ones use.
    for (let n = 0; n < 3; n += 1) expect(await call()).toBe(true);
    const agent = new Agent({ keepAlive: true });
    let asked = 0;
    await expectUnharmedInTurns('p95Ms', { call, calls: CALLS, everyMs: EVERY_MS }, () => {
      const running = crowd(WIDTH, () => post(agent, gateway.baseUrl + path, key, body, headers));
      return async () => {
        for (const count of (await running.stop()).values()) asked += count;
      };
    });
    agent.destroy();
    expect(asked).toBeGreaterThan(WIDTH);
  });
});
