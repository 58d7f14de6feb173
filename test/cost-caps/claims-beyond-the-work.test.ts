import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { toolToml } from '../mcp/calls/modern-post.ts';
import { beginTask, getTask } from '../mcp/tasks/task-client.ts';
import { startTaskServer, type TaskServer } from '../mcp/tasks/task-server.ts';
import { statusEvent, taskResult, writeEvent } from '../a2a/calls/support/raw-served.ts';
import { dialIn, type DialledIn } from '../support/dial-in.ts';
import {
  agentBlock,
  startAgentSpine,
  startRawAgent,
  type AgentSpine,
  type RawAgent,
  type RawExchange,
} from '../support/a2a-agent/index.ts';

// What a tool or an agent says that it used, where what was seen of the call cannot explain it.

/** A micro-USD for each token, 1,000 for a second, no more than a dollar. */
const BY_USE = 'per_call = 0\nprompt = 1\ncompletion = 1\nper_second = 0.001\nper_call_max = 1';
const GREEDY = { completion: 100_000, prompt: 100_000, second: 300 };
/**
 * More than a short call can have come to: its bytes in both directions, a few tokens that no call shows, and two
 * or three seconds.
 */
const SHORT_CALL_MAX = 10_000n;
const CLAIMED = 500_000n;

let world: AgentSpine;
let server: TaskServer;
let agent: RawAgent;
let proxy: DialledIn;
/** Milliseconds that the gateway's clock is ahead. */
let ahead = 0;
/** Tasks of the agent as it shows them. */
const tasks = new Map<string, object>();
/** Where the agent is to tell of the task that was begun last. */
let webhook: string | null = null;

const resultOf = (usage: unknown, words = 'hi') => ({
  content: [{ type: 'text', text: words }],
  _meta: { 'tollgate/usage': usage },
});

const usageIn = (text: string): unknown => (JSON.parse(text) as { readonly usage: unknown }).usage;
const textOf = ({ request }: RawExchange): string =>
  (request.params as { readonly message: { readonly parts: readonly [{ readonly text: string }] } }).message.parts[0]
    .text;
const card = () => ({
  name: 'Claims',
  description: 'Claims what it is told to.',
  version: '1',
  supportedInterfaces: [{ url: agent.url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  capabilities: { streaming: true, pushNotifications: true },
  defaultInputModes: [],
  defaultOutputModes: [],
  skills: [],
});

beforeAll(async () => {
  server = await startTaskServer();
  server.instead = ({ method, params }) => {
    const { usage, words = 'hi' } = (params['arguments'] ?? {}) as {
      readonly usage?: unknown;
      readonly words?: string;
    };
    return method === 'tools/call' && usage !== undefined
      ? JSON.stringify({ resultType: 'complete', ...resultOf(usage, words) })
      : undefined;
  };
  agent = await startRawAgent((exchange) => {
    const { request, response, result } = exchange;
    if (request.path.startsWith('/.well-known/'))
      return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(card()));
    const { id: asked, historyLength } = request.params as { readonly id?: string; readonly historyLength?: number };
    if (asked !== undefined) return result({ ...tasks.get(asked)!, ...(historyLength === 0 ? { history: [] } : {}) });
    if (textOf(exchange) === 'work') {
      const id = randomUUID();
      const { configuration } = request.params as {
        readonly configuration?: { readonly taskPushNotificationConfig?: { readonly url: string } };
      };
      webhook = configuration?.taskPushNotificationConfig?.url ?? null;
      return result(taskResult(id, 'WORKING'));
    }
    const metadata = { 'tollgate/usage': usageIn(textOf(exchange)) };
    if (request.method !== 'SendStreamingMessage') return result(taskResult(randomUUID(), 'COMPLETED', { metadata }));
    const id = randomUUID();
    writeEvent(exchange, taskResult(id, 'WORKING'));
    writeEvent(exchange, statusEvent(id, 'WORKING', { metadata: { 'tollgate/usage': { completion: 1 } } }));
    writeEvent(exchange, statusEvent(id, 'COMPLETED', { metadata }));
    response.end();
  });
  const blocks = (name: string) =>
    toolToml({ name: `${name}/tools`, url: server.url, pricing: BY_USE, provider: name }) +
    agentBlock({ name: `${name}/agent`, endpoint: agent.url, pricing: BY_USE, provider: name });
  world = await startAgentSpine(blocks('own'), { now: () => Date.now() + ahead });
  proxy = await dialIn({ router: world.spine.origin, services: blocks('far') });
});
afterAll(async () => {
  proxy.kill();
  await world.close();
  await server.close();
  await agent.close();
});
afterEach(async () => {
  await world.spine.quiet();
  expect(await world.spine.faults()).toEqual([]);
});

interface Claim {
  readonly meter: 'prompt' | 'completion' | 'second';
  readonly claimed: number;
  readonly most: number;
}

interface Charged {
  readonly cost: bigint;
  readonly flags: readonly string[];
  readonly claims: readonly Claim[];
  /** The line of the log that tells the operator of the flag. */
  readonly line: { readonly usage: Readonly<Record<string, number>> } | undefined;
  readonly text: string;
}

/** What the newest call of the account cost that `work` makes, and what its provider was flagged for. */
async function charged(work: () => Promise<string>): Promise<Charged> {
  const { spine } = world;
  await spine.quiet();
  const before = (await spine.balance()).available;
  const text = await work();
  await spine.quiet();
  const { data } = (await (await spine.get('/generations?limit=1')).json()) as {
    readonly data: readonly [{ readonly id: string }];
  };
  const [{ id }] = data;
  const { flags, claims } = (await spine.generation(id)) as Pick<Charged, 'flags' | 'claims'>;
  const lines = spine.logs.map((logged) => JSON.parse(logged) as { readonly msg: string; generation_id: string });
  const line = lines.find(({ msg, generation_id: of }) => msg === 'provider flagged' && of === id) as Charged['line'];
  return { cost: before - (await spine.balance()).available, flags, claims, line, text };
}

async function post(path: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const { spine } = world;
  const response = await fetch(spine.origin + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${spine.key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return text;
}

const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });
const message = (usage: unknown) => ({
  messageId: randomUUID(),
  role: 'ROLE_USER',
  parts: [{ text: JSON.stringify({ usage }) }],
});
const chat = (model: string, usage: unknown, stream = false) => ({
  model,
  stream,
  messages: [{ role: 'user', content: JSON.stringify({ usage }) }],
});
const NEW = { 'a2a-version': '1.0' };

/** Each asks for the tool or the agent of `own` or `far`. */
const ENDPOINTS: readonly (readonly [name: string, ask: (name: string, usage: unknown) => Promise<string>])[] = [
  ['MCP', (name, usage) => post(`/mcp/${name}/tools`, rpc('tools/call', { name: 'job', arguments: { usage } }))],
  [
    'JSON-RPC, a tool',
    (name, usage) =>
      post('/api/v1/rpc', rpc('tools/call', { service: `${name}/tools`, name: 'job', arguments: { usage } })),
  ],
  ['a tool as a chat model', (name, usage) => post('/api/v1/chat/completions', chat(`mcp/${name}/tools/job`, usage))],
  ['A2A', (name, usage) => post(`/a2a/${name}/agent`, rpc('SendMessage', { message: message(usage) }), NEW)],
  [
    'A2A, a stream',
    (name, usage) => post(`/a2a/${name}/agent`, rpc('SendStreamingMessage', { message: message(usage) }), NEW),
  ],
  [
    'JSON-RPC, an agent',
    (name, usage) => post('/api/v1/rpc', rpc('SendMessage', { agent: `${name}/agent`, message: message(usage) }), NEW),
  ],
  [
    'an agent as a chat model',
    (name, usage) => post('/api/v1/chat/completions', chat(`a2a/${name}/agent`, usage, true)),
  ],
];

/** The record and the log have each claim of GREEDY. `billed`: which of its numbers is charged. */
function expectNumbers({ flags, claims, line }: Charged, billed: 'claimed' | 'most'): void {
  expect(line).toMatchObject({ flags, claims, alert: true });
  expect(Object.fromEntries(claims.map(({ meter, claimed }) => [meter, claimed]))).toEqual(GREEDY);
  for (const claim of claims) {
    expect(claim.most).toBeLessThan(claim.claimed);
    expect(line!.usage[claim.meter]).toBe(claim[billed]);
  }
}

describe.each(ENDPOINTS)('%s', (_name, ask) => {
  test('a provider that dialled in is flagged, and paid what the work can have come to', async () => {
    const far = await charged(() => ask('far', GREEDY));
    expect(far.flags).toEqual(['usage_implausible']);
    expect(far.cost).toBeGreaterThan(0n);
    expect(far.cost).toBeLessThan(SHORT_CALL_MAX);
    expectNumbers(far, 'most');
  });

  test("the operator's own is flagged, and paid what it claims", async () => {
    const own = await charged(() => ask('own', GREEDY));
    expect(own).toMatchObject({ cost: CLAIMED, flags: ['usage_implausible'] });
    expectNumbers(own, 'claimed');
  });

  test('a claim that the work explains is charged as it is', async () => {
    const { cost, flags } = await charged(() => ask('far', { prompt: 200, completion: 20, second: 0.2 }));
    expect({ cost, flags }).toEqual({ cost: 1_220n, flags: [] });
  });
});

test('many tokens are explained by a long answer, and many of a prompt by a long request', async () => {
  const words = 'word '.repeat(4_000);
  const usage = { completion: 20_000, prompt: 20_000 };
  const ask = () => post('/mcp/far/tools', rpc('tools/call', { name: 'job', arguments: { usage, words } }));
  expect(await charged(ask)).toMatchObject({ cost: 40_000n, flags: [] });
});

describe('a task of a tool', () => {
  const toTheEnd = (name: string, usage: unknown) =>
    charged(async () => {
      const { id } = await beginTask(world.spine, `${name}/tools`);
      server.says(server.ids.at(-1)!, { status: 'completed', result: resultOf(usage) });
      return (await getTask(world.spine, `${name}/tools`, id)).text;
    });

  test('is held against what was seen of it', async () => {
    const far = await toTheEnd('far', GREEDY);
    expect(far.flags).toEqual(['usage_implausible']);
    expect(far.cost).toBeLessThan(SHORT_CALL_MAX);
    expectNumbers(far, 'most');
    const own = await toTheEnd('own', GREEDY);
    expect(own).toMatchObject({ cost: CLAIMED, flags: ['usage_implausible'] });
    expectNumbers(own, 'claimed');
  });

  test('may claim all the time from its call to its end', async () => {
    const long = await charged(async () => {
      const { id } = await beginTask(world.spine, 'far/tools');
      ahead += 300_000;
      server.says(server.ids.at(-1)!, { status: 'completed', result: resultOf({ second: 300 }) });
      return (await getTask(world.spine, 'far/tools', id)).text;
    });
    expect(long).toMatchObject({ cost: 300_000n, flags: [] });
  });
});

describe('a task of an agent', () => {
  /** What such a task had given before its end. */
  const artifacts = [{ artifactId: 'a', parts: [{ text: 'x'.repeat(5_000) }] }];
  const usageOf = (usage: unknown) => ({ metadata: { 'tollgate/usage': usage } });

  async function begin(configuration: object = {}): Promise<string> {
    const sent = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'work' }] };
    const params = { message: sent, configuration: { returnImmediately: true, ...configuration } };
    const { result } = JSON.parse(await post('/a2a/far/agent', rpc('SendMessage', params), NEW)) as {
      readonly result: { readonly task: { readonly id: string } };
    };
    return result.task.id;
  }
  const asked = (method: string, id: string, more: object = {}) =>
    post('/a2a/far/agent', rpc(method, { id, ...more }), NEW);
  const ends = (id: string, state: string, more: object) => void tasks.set(id, taskResult(id, state, more).task);

  test('is held against what was seen of it', async () => {
    const told = await charged(async () => {
      const id = await begin();
      ends(id, 'COMPLETED', { ...usageOf(GREEDY), artifacts });
      return asked('GetTask', id);
    });
    expect(told.flags).toEqual(['usage_implausible']);
    expect(told.cost).toBeLessThan(5_000n * 2n + SHORT_CALL_MAX);
    expectNumbers(told, 'most');
  });

  test('may claim all the time from its message to its end', async () => {
    const long = await charged(async () => {
      const id = await begin();
      ahead += 300_000;
      ends(id, 'COMPLETED', usageOf({ second: 300 }));
      return asked('GetTask', id);
    });
    expect(long).toMatchObject({ cost: 300_000n, flags: [] });
  });

  test('that is canceled is held against what was seen of it', async () => {
    const { cost, flags } = await charged(async () => {
      const id = await begin();
      ends(id, 'CANCELED', { ...usageOf(GREEDY), artifacts });
      return asked('CancelTask', id);
    });
    expect(flags).toEqual(['usage_implausible']);
    expect(cost).toBeLessThan(5_000n * 2n + SHORT_CALL_MAX);
  });

  describe('that answers by messages alone', () => {
    const history = [{ messageId: randomUUID(), role: 'ROLE_AGENT', parts: [{ text: 'x'.repeat(5_000) }] }];
    const usage = usageOf({ completion: 4_000 });

    test('is held against all of them, also where its client asks for none', async () => {
      const told = await charged(async () => {
        const id = await begin();
        ends(id, 'COMPLETED', { ...usage, history });
        return asked('GetTask', id, { historyLength: 0 });
      });
      expect(told).toMatchObject({ cost: 4_000n, flags: [] });
    });

    test('is held against all of them where nobody asks, and the gateway sees its end', async () => {
      const told = await charged(async () => {
        ends(await begin(), 'COMPLETED', { ...usage, history });
        await expect.poll(async () => (await world.spine.balance()).locked, { timeout: 60_000 }).toBe(0n);
        return '';
      });
      expect(told).toMatchObject({ cost: 4_000n, flags: [] });
    });

    test('is held against all of them where it tells its end as a bare status', async () => {
      const told = await charged(async () => {
        const id = await begin({ taskPushNotificationConfig: { url: 'http://127.0.0.1:9/news' } });
        ends(id, 'COMPLETED', { history });
        const body = JSON.stringify(statusEvent(id, 'COMPLETED', usage));
        const answer = await fetch(webhook!, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
        expect(answer.status).toBe(204);
        return '';
      });
      expect(told).toMatchObject({ cost: 4_000n, flags: [] });
    });
  });

  test.each([
    ['explains', { completion: 4_000 }, 4_000n, []],
    ['does not explain', { completion: 100_000 }, SHORT_CALL_MAX, ['usage_implausible']],
  ])(
    'whose end is told as a bare status is asked for: what it gave %s the claim',
    async (_explains, usage, most, flags) => {
      const told = await charged(async () => {
        const id = await begin({ taskPushNotificationConfig: { url: 'http://127.0.0.1:9/news' } });
        ends(id, 'COMPLETED', { artifacts });
        const body = JSON.stringify(statusEvent(id, 'COMPLETED', usageOf(usage)));
        const answer = await fetch(webhook!, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
        expect(answer.status).toBe(204);
        return '';
      });
      expect(told.flags).toEqual(flags);
      expect(told.cost).toBeGreaterThan(3_999n);
      expect(told.cost).toBeLessThanOrEqual(most);
    },
  );
});
