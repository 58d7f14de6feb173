import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { NewKeyFields } from '#auth/keys';
import { OPERATIONS, METHODS, type A2aOperation } from '../../src/a2a/wire/protocol.ts';
import { REST_ROUTES } from '../../src/a2a/wire/rest.ts';
import { LEGACY_METHODS, MODERN_METHODS } from '../../src/mcp/wire/revisions.ts';
import { toolToml } from '../mcp/calls/modern-post.ts';
import { askTask, beginTask } from '../mcp/tasks/task-client.ts';
import { startTaskServer, type TaskServer } from '../mcp/tasks/task-server.ts';
import { startVideoProvider, videoBlock, type VideoProvider } from '../media/support/video-provider.ts';
import { agentBlock, startAgent, type Agent } from '../support/a2a-agent/index.ts';
import { isLikeAnId } from '../support/id-places.ts';
import { fill, routesOf } from '../support/route-table.ts';
import { ask, MODEL, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

/*
 * The ids of protocols: sessions and tasks of MCP, tasks of agents by every binding, and parameters of /rpc. The
 * methods come from the tables by which the gateway serves them. Whoever may not see a thing gets the very answer of an
 * id that nobody has. A new method has to be named here. See ids-of-others.test.ts for the HTTP API.
 */

const SERVICE = 'test/tool';
const AGENT = 'test/agent';

let spine: Spine;
let tools: TaskServer;
let agent: Agent;
let videos: VideoProvider;
let account: string;
let owners: readonly (readonly [who: string, key: string])[];
let askers: readonly (readonly [who: string, key: string])[];
let made = 0;

beforeAll(async () => {
  [tools, agent, videos] = await Promise.all([
    startTaskServer(),
    startAgent({ version: 'both' }),
    startVideoProvider(),
  ]);
  videos.begin(() => ({ status: 'in_progress' }));
  spine = await startSpine({
    toml:
      `${UNHURRIED}[media]\nfree_bytes_min = 0\n[webhooks]\nallow_private = true\n` +
      toolToml({ name: SERVICE, url: tools.url }) +
      agentBlock({ name: AGENT, endpoint: agent.url }) +
      videoBlock({ url: videos.url }),
  });
  const keyWith = async (fields: Partial<NewKeyFields>) => (await spine.tenant('owner', '0', fields)).key;
  const whole = await spine.tenant('owner', '50');
  ({ account } = whole);
  owners = [
    ['a key without restrictions', whole.key],
    ['a key with a limit', await keyWith({ limit: 20_000_000n })],
  ];
  askers = [
    ['a key with a limit', await keyWith({ limit: 20_000_000n })],
    ['a key with a rate', await keyWith({ requestsPerMinute: 100_000 })],
    ['a key that may use the services', await keyWith({ allowedServices: [SERVICE, AGENT, MODEL, 'test/film'] })],
    ['a key that may use another service', await keyWith({ allowedServices: ['test/other'] })],
    ['another account', (await spine.tenant('stranger', '50')).key],
  ];
});
afterAll(async () => {
  for (const job of videos.jobs.values()) job.status = 'failed';
  await spine.stop();
  await Promise.all([tools.close(), agent.close(), videos.close()]);
});

interface Sent {
  readonly method?: string;
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The answer without the ids of the request, and without what each answer has anew. Of a stream, its first part. */
async function answerTo({ method = 'POST', path, body, headers = {} }: Sent, key: string, ids: readonly string[]) {
  const response = await fetch(spine.origin + path, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      accept: 'application/json, text/event-stream',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  let text = '';
  if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
    const reader = response.body!.getReader();
    const { value } = await reader.read();
    text = Buffer.from(value ?? []).toString();
    await reader.cancel();
  } else text = await response.text();
  for (const id of ids) text = text.replaceAll(id, '<id>');
  // Calls of anybody move the time up to which the figures count.
  const ANEW = /(?:gen|req)-[\w-]+|[0-9a-f]{8}-[0-9a-f-]{27}|(?<="as_of":)"[^"]+"/g;
  return { status: response.status, text: text.replaceAll(ANEW, '<new>') };
}

const unknownLike = (id: string) => id.replaceAll(/[0-9a-f]/g, (one) => (one === '0' ? '1' : '0'));

/**
 * Sends the request with `id` and with an id that nobody has. The answers are the same for everybody who may not see
 * the thing, and another one for its owner, who asks with the id of a `fresh` thing.
 */
async function sameAsUnknown(what: string, id: string, request: (id: string) => Sent): Promise<void> {
  const nobodys = unknownLike(id);
  for (const [who, key] of askers) {
    const answer = await answerTo(request(id), key, [id, nobodys]);
    expect(answer, `${what} by ${who}`).toEqual(await answerTo(request(nobodys), key, [id, nobodys]));
    expect(answer.status, `${what} by ${who}`).not.toBe(500);
  }
}

async function differsForOwner(what: string, owner: string, id: string, request: (id: string) => Sent): Promise<void> {
  const nobodys = unknownLike(id);
  const answer = await answerTo(request(id), owner, [id, nobodys]);
  expect(answer, what).not.toEqual(await answerTo(request(nobodys), owner, [id, nobodys]));
}

describe('MCP', () => {
  const addresses = () =>
    routesOf(spine.app.server)
      .filter(({ method, path }) => /\/mcp(\/\*)?$/.test(path) && ['GET', 'POST', 'DELETE'].includes(method))
      .map(({ method, path }) => ({ method, path: fill(path, { '*': SERVICE }), all: !path.endsWith('*') }));

  async function openSession(key: string, all: boolean): Promise<string> {
    const initialize = {
      jsonrpc: '2.0',
      id: 0,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
    };
    const response = await fetch(`${spine.origin}${all ? '/mcp' : `/mcp/${SERVICE}`}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify(initialize),
    });
    await response.text();
    return response.headers.get('mcp-session-id')!;
  }

  /** What may be sent to a session: each request, a notification, and listening and ending. */
  function inSession(method: string, path: string): readonly ((id: string) => Sent)[] {
    const at = (body?: object) => (id: string) => ({
      method,
      path,
      headers: { 'mcp-session-id': id },
      ...(body === undefined ? {} : { body }),
    });
    if (method !== 'POST') return [at()];
    const params = { name: 'job', uri: 'file:///a', arguments: {}, level: 'info' };
    const requests = Object.keys(LEGACY_METHODS)
      // It opens a new session, whatever the header.
      .filter((name) => name !== 'initialize')
      .map((name) => at({ jsonrpc: '2.0', id: 1, method: name, params }));
    return [...requests, at({ jsonrpc: '2.0', method: 'notifications/initialized' })];
  }

  test('a session of somebody else is an unknown session, at every address and for every message', async () => {
    const places = addresses();
    expect(places.length).toBeGreaterThanOrEqual(12);
    for (const [who, key] of owners)
      for (const { method, path, all } of places) {
        const id = await openSession(key, all);
        expect(id).toMatch(/^[\w-]{43}$/);
        for (const [index, request] of inSession(method, path).entries())
          await sameAsUnknown(`${method} ${path} ${index}, of ${who}`, id, request);
        await differsForOwner(`${method} ${path} of ${who}`, key, id, inSession(method, path)[0]!);
      }
  });

  test('a task of somebody else is an unknown task, by every method that names one', async () => {
    const ofTasks = Object.entries(MODERN_METHODS).filter(([, { nameParam }]) => nameParam === 'taskId');
    expect(ofTasks.map(([name]) => name)).toEqual(['tasks/get', 'tasks/update', 'tasks/cancel']);
    for (const [, key] of owners) {
      const { id } = await beginTask({ origin: spine.origin, key }, SERVICE);
      for (const { path } of addresses().filter(({ method }) => method === 'POST'))
        for (const [method] of ofTasks) {
          for (const [who, by] of askers) {
            const answers = await Promise.all(
              [id, unknownLike(id)].map(async (one) => {
                const { status, message } = await askTask({ origin: spine.origin, key: by }, path, method, one);
                return { status, error: message.error };
              }),
            );
            expect(answers[0]!.error, `${method} at ${path} by ${who}`).toBeDefined();
            expect(answers[0], `${method} at ${path} by ${who}`).toEqual(answers[1]);
          }
          const own = await askTask({ origin: spine.origin, key }, path, 'tasks/get', id);
          expect(own.message.result['taskId'], path).toBe(id);
        }
      await askTask({ origin: spine.origin, key }, `/mcp/${SERVICE}`, 'tasks/cancel', id);
    }
  });
});

/** An id that nobody has instead of a task's, in the parameters of an operation of A2A. */
const A2A_PARAMS: Record<A2aOperation, ((id: string, version: string) => readonly Record<string, unknown>[]) | null> = {
  send: messagesTo,
  stream: messagesTo,
  get: (id) => [{ id }],
  cancel: (id) => [{ id }],
  subscribe: (id) => [{ id }],
  'push-set': (id, version) => {
    const config = { id: 'c-1', url: 'https://client.example/hook' };
    return [version === '1.0' ? { taskId: id, ...config } : { taskId: id, pushNotificationConfig: config }];
  },
  'push-get': configOf,
  'push-delete': configOf,
  'push-list': (id, version) => [version === '1.0' ? { taskId: id } : { id }],
  // They name no task. The list is tested in whose-task-it-is.test.ts.
  list: null,
  card: null,
};

function messagesTo(id: string, version: string) {
  const message =
    version === '1.0'
      ? { role: 'ROLE_USER', parts: [{ text: 'hello' }] }
      : { kind: 'message', role: 'user', parts: [{ kind: 'text', text: 'hello' }] };
  const named = () => ({ ...message, messageId: `m-${(made += 1)}` });
  return [{ message: { ...named(), taskId: id } }, { message: { ...named(), referenceTaskIds: [id] } }];
}

function configOf(id: string, version: string) {
  return [version === '1.0' ? { taskId: id, id: 'c-1' } : { id, pushNotificationConfigId: 'c-1' }];
}

async function agentTask(key: string): Promise<string> {
  const params = {
    message: { kind: 'message', messageId: `m-${(made += 1)}`, role: 'user', parts: [{ kind: 'text', text: 'wait' }] },
    configuration: { blocking: false },
  };
  const response = await fetch(`${spine.origin}/a2a/${AGENT}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params }),
  });
  const { result } = (await response.json()) as { result: { id: string } };
  await agent.waits();
  return result.id;
}

describe('A2A', () => {
  const paths = () => [
    ...new Set(
      routesOf(spine.app.server)
        .filter(({ method, path }) => /\/a2a(\/\*)?$/.test(path) && method === 'POST')
        .map(({ path }) => fill(path, { '*': AGENT })),
    ),
  ];

  test('every operation is known', () => {
    expect(Object.keys(A2A_PARAMS).toSorted()).toEqual(OPERATIONS.toSorted());
  });

  test.each(['0.3', '1.0'] as const)('a task of somebody else is an unknown task, by JSON-RPC %s', async (version) => {
    expect(paths()).toHaveLength(4);
    for (const [whose, key] of owners) {
      const id = await agentTask(key);
      for (const path of paths())
        for (const [operation, method] of Object.entries(METHODS[version])) {
          const paramsOf = A2A_PARAMS[operation as A2aOperation];
          for (const index of (paramsOf?.(id, version) ?? []).keys()) {
            const request = (one: string) => ({
              path,
              headers: { 'a2a-version': version },
              body: { jsonrpc: '2.0', id: 1, method, params: paramsOf!(one, version)[index] },
            });
            await sameAsUnknown(`${method} at ${path}, of ${whose}`, id, request);
            if (operation === 'get') await differsForOwner(`${method} at ${path}`, key, id, request);
          }
        }
      agent.finish(id);
    }
  });

  test.each(['0.3', '1.0'] as const)('a task of somebody else is an unknown task, by HTTP+JSON %s', async (version) => {
    for (const [whose, key] of owners) {
      const id = await agentTask(key);
      for (const address of paths().filter((path) => path.endsWith(AGENT)))
        for (const { operation, verb, path } of REST_ROUTES[version]) {
          const paramsOf = A2A_PARAMS[operation];
          for (const index of (paramsOf?.(id, version) ?? []).keys()) {
            const request = (one: string) => ({
              method: verb,
              path: address + path.replace('{id}', one).replace('{configId}', 'c-1'),
              headers: { 'a2a-version': version },
              ...(verb === 'POST' ? { body: paramsOf!(one, version)[index] } : {}),
            });
            await sameAsUnknown(`${verb} ${path} at ${address}, of ${whose}`, id, request);
            if (operation === 'get') await differsForOwner(`${verb} ${path}`, key, id, request);
          }
        }
      agent.finish(id);
    }
  });

  test('a context of somebody else takes no message, and an agent hears of none', async () => {
    for (const [, key] of owners) {
      const shown = await fetch(`${spine.origin}/a2a/${AGENT}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/get', params: { id: await agentTask(key) } }),
      });
      const { contextId, id } = ((await shown.json()) as { result: { contextId: string; id: string } }).result;
      const words = `echo to ${contextId}`;
      const send = (path: string, by: string) => {
        const message = { kind: 'message', role: 'user', parts: [{ kind: 'text', text: words }], contextId };
        const params = { message: { ...message, messageId: `m-${(made += 1)}` } };
        return answerTo({ path, body: { jsonrpc: '2.0', id: 1, method: 'message/send', params } }, by, []);
      };
      // Only messages count: the gateway itself asks for the running task, seconds after it began.
      const heard = () => agent.received.filter(({ body }) => body.includes(words)).length;
      for (const [who, by] of askers)
        for (const path of paths()) expect((await send(path, by)).text, `${path} by ${who}`).toContain('"error"');
      expect(heard()).toBe(0);
      expect((await send(paths()[0]!, key)).text).not.toContain('"error"');
      expect(heard()).toBe(1);
      agent.finish(id);
    }
  });
});

describe('JSON-RPC at /rpc', () => {
  const THINGS = {
    video: async (key: string) => {
      const body = { model: 'test/film', prompt: 'A tollgate', duration: '4s' };
      const response = await spine.post('/video/queue', body, { authorization: `Bearer ${key}` });
      return ((await response.json()) as { id: string }).id;
    },
    generation: async (key: string) => {
      const response = await spine.post('/chat/completions', ask('hi !tokens:1'), { authorization: `Bearer ${key}` });
      await response.text();
      return response.headers.get('x-generation-id')!;
    },
    'agent task': agentTask,
    key: async () => (await spine.app.keys.create({ account, label: 'canary', kind: 'live' }))!.record.hash,
  };
  /** The parameters with an id, by method. */
  const IDS: Readonly<Record<string, keyof typeof THINGS>> = {
    'video/retrieve task_id': 'video',
    'generation/get id': 'generation',
    'tasks/get id': 'agent task',
    'tasks/cancel id': 'agent task',
    'GetTask id': 'agent task',
    'CancelTask id': 'agent task',
    'generations/list key': 'key',
    'activity/list api_key_hash': 'key',
    'analytics/own key': 'key',
  };
  const OTHERS = [
    // Words of the client, positions in lists, and states of calls.
    /^\S+ session_id$/,
    /^responses\/create prompt_cache_key$/,
    /^generations\/list (cursor|state)$/,
    /^models\/(list|user) (after|before)_id$/,
    // Quotes, kept responses, and tasks of agents that are called as models: the routes of /rpc are those of
    // ids-of-others.test.ts.
    /^\S+ quote_id$/,
    /^responses\/create previous_response_id$/,
    /^\S+ tollgate\.(task_id|context_id|state)$/,
  ];

  test('every parameter with the name of an id is known, and is an unknown id for others', async () => {
    const discover = { path: '/api/v1/rpc', body: { jsonrpc: '2.0', id: 1, method: 'rpc.discover' } };
    const { result } = JSON.parse((await answerTo(discover, owners[0]![1], [])).text) as {
      result: { methods: { name: string; params: { name: string }[] }[] };
    };
    const names = result.methods.flatMap(({ name, params }) =>
      params.filter((param) => isLikeAnId(param.name)).map((param) => `${name} ${param.name}`),
    );
    expect(names.filter((name) => !(name in IDS) && !OTHERS.some((one) => one.test(name)))).toEqual([]);
    expect(Object.keys(IDS).filter((name) => !names.includes(name))).toEqual([]);
    for (const [place, kind] of Object.entries(IDS)) {
      const [method, param] = place.split(' ') as [string, string];
      const id = await THINGS[kind](owners[1]![1]);
      const entry = (one: string) => ({ jsonrpc: '2.0', id: 1, method, params: { [param]: one } });
      await sameAsUnknown(place, id, (one) => ({ path: '/api/v1/rpc', body: entry(one) }));
      await sameAsUnknown(`${place} in a batch`, id, (one) => ({ path: '/api/v1/rpc', body: [entry(one)] }));
      if (kind !== 'key')
        await differsForOwner(place, owners[1]![1], id, (one) => ({ path: '/api/v1/rpc', body: entry(one) }));
      const cancel = { jsonrpc: '2.0', id: 1, method: 'tasks/cancel', params: { id } };
      if (kind === 'agent task') await answerTo({ path: '/api/v1/rpc', body: cancel }, owners[1]![1], []);
    }
  });
});

test('the books are in order', async () => {
  for (const job of videos.jobs.values()) job.status = 'failed';
  expect(await spine.faults()).toEqual([]);
});
