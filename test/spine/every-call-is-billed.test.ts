import { KINDS_OF_MODELS } from '#config/model-kinds';
import { expect, test } from 'vitest';
import { BILLED_PATHS } from '../peers/routes.ts';
import { requestOf, WIRES } from '../peers/wires.ts';
import { fill, routesOf } from '../support/route-table.ts';
import { ask, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// No route reaches a provider past the billing: whatever arrives there has a lock, made before it arrived.

const spine = spineOfFile(() => ({ toml: UNHURRIED }));

/** Whether two paths are methods of a model, whose address names the model. */
const isBelow = (path: string, other: string) => path.startsWith(other.slice(0, other.lastIndexOf(':') + 1));

/** Bodies that some route may take for a call, with those of a wire at its own path. */
const bodiesFor = (path: string): readonly object[] => [
  ...WIRES.filter((wire) => wire.path === path || (wire.sent !== undefined && isBelow(path, wire.path))).flatMap(
    (wire) =>
      [false, true].map((stream) => requestOf(wire, { model: 'test/model', ...wire.ask('hello', 5), stream }).body),
  ),
  ask('hello'),
  ask('hello', { stream: true }),
  { model: 'test/model', input: 'hello', prompt: 'hello', max_tokens: 5, max_output_tokens: 5 },
  { jsonrpc: '2.0', id: 1, method: 'chat/completions', params: ask('hello') },
  { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'test/model', arguments: {} } },
  { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'chat', arguments: { prompt: 'hello' } } },
  {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'ask_model', arguments: { model: 'test/model', prompt: 'hello' } },
  },
  { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message: messageOf('ROLE_USER') } },
  { jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params: { message: messageOf('ROLE_USER') } },
  { message: messageOf('user') },
];

const messageOf = (role: string) => ({
  messageId: crypto.randomUUID(),
  role,
  parts: [{ text: 'hello' }],
  metadata: { 'tollgate/agent': 'model/test/model' },
});

/** Billed paths that no chat model answers. */
const OF_OTHERS = (path: string) =>
  KINDS_OF_MODELS.some(([, { paths }]) => paths.some((one) => path.endsWith(one))) ||
  /\/(?:images?|videos?)(?:\/|$)|\/compact$|:(?:embedContent|batchEmbedContents)$/.test(path);

/** What a path that names a service is asked for: the model by its own name, and as other routes call it. */
const NAMES = ['test/model', 'model/test/model', 'model/test/model/message:send'];

test('every route, with every body: what arrives at the provider has its lock', async () => {
  const { hash } = await spine.tenant('walker', '0');
  const routes = routesOf(spine.app.server).filter(({ method }) => method !== 'HEAD');
  const reached = new Set<string>();
  for (const key of [spine.key, spine.adminKey]) {
    for (const { method, path } of routes) {
      const named = path.includes('*') ? NAMES : [''];
      for (const [name, body] of named.flatMap((one) =>
        (method === 'GET' || method === 'DELETE' ? [undefined] : bodiesFor(path)).map((two) => [one, two] as const),
      )) {
        const seen = spine.provider.log.length;
        const response = await fetch(
          spine.origin + fill(path, { hash, id: 'tollgate:local:walker', model: 'test/model', '*': name }),
          {
            method,
            headers: { authorization: `Bearer ${key}`, ...(body ? { 'content-type': 'application/json' } : {}) },
            ...(body ? { body: JSON.stringify(body) } : {}),
          },
        );
        await response.text();
        if (spine.provider.log.length === seen) continue;
        reached.add(`${method} ${path}`);
        expect(spine.provider.log.length).toBe(seen + 1);
        // The provider knows the call by the request id; so does its lock.
        const locks = await Promise.all((await spine.locks()).map((id) => spine.app.ledger.find(id)));
        const request = spine.provider.log.at(-1)!.headers['x-request-id'];
        const lock = locks.find((one) => (JSON.parse(one!.lockDetail) as { requestId: string }).requestId === request);
        expect(lock, `${method} ${path}`).toBeDefined();
        expect(lock!.amount).toBeGreaterThan(0n);
      }
    }
  }
  const billed = new Set(BILLED_PATHS.map((path) => `POST ${path}`));
  expect(
    [...reached].filter((route) => !billed.has(route)),
    'these call a provider: they belong into BILLED_PATHS of test/peers/routes.ts',
  ).toEqual([]);
  const ofModels = BILLED_PATHS.filter((path) => !OF_OTHERS(path)).map((path) => `POST ${path}`);
  expect([...reached], 'these reach a provider, those of BILLED_PATHS in test/peers/routes.ts have to').toEqual(
    expect.arrayContaining(ofModels),
  );
  expect(await spine.locks()).toHaveLength(spine.provider.log.length);
  expect(await spine.faults()).toEqual([]);
});

test('a lock is there before its request arrives at the provider', async () => {
  const before = await spine.balance();
  const open = Promise.withResolvers<void>();
  spine.provider.hold(open.promise);
  const seen = spine.provider.log.length;
  const call = spine.post('/chat/completions', ask('hello !tokens:2'));
  while (spine.provider.log.length === seen) await new Promise((resolve) => setImmediate(resolve));
  const during = await spine.balance();
  expect(during.locked).toBeGreaterThan(0n);
  expect(during.available + during.locked).toBe(before.available + before.locked);
  open.resolve();
  spine.provider.hold(null);
  expect((await call).status).toBe(200);
  expect(await spine.faults()).toEqual([]);
});
