import { afterEach, expect, test } from 'vitest';
import { sendRaw } from '../support/raw-http.ts';
import { ask, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// `X-Request-ID`: the consumer's own comes back, goes to the provider and into the log; what is no id is replaced.

const spine = spineOfFile(() => ({ toml: UNHURRIED }));
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const idOf = async (given?: string, stream = false) => {
  const response = await spine.post(
    '/chat/completions',
    ask('hello', { stream }),
    given === undefined ? {} : { 'x-request-id': given },
  );
  await response.text();
  expect(response.status).toBe(200);
  return response.headers.get('x-request-id')!;
};
const callLines = () =>
  spine.logs.map((line) => JSON.parse(line) as Record<string, unknown>).filter((line) => line['msg'] === 'call');

test.each([false, true])(
  'a given id is echoed, forwarded, logged, and kept on the generation (stream: %s)',
  async (stream) => {
    const given = `client-7:/é`.replace('é', 'e') + String(stream);
    const response = await spine.post('/chat/completions', ask('hello', { stream }), { 'x-request-id': given });
    await response.text();
    expect(response.headers.get('x-request-id')).toBe(given);
    expect(spine.provider.log.at(-1)!.headers['x-request-id']).toBe(given);
    await spine.quiet();
    expect(callLines().at(-1)).toMatchObject({
      request_id: given,
      generation_id: response.headers.get('x-generation-id'),
    });
    expect((await spine.generation(response.headers.get('x-generation-id'))).request_id).toBe(given);
  },
);

test('without one, every request gets another, which the provider gets too', async () => {
  const ids = [await idOf(), await idOf(), await idOf(undefined, true)];
  expect(new Set(ids).size).toBe(3);
  for (const id of ids) expect(id).toMatch(/^[\x21-\x7e]{8,128}$/);
  expect(spine.provider.log.at(-1)!.headers['x-request-id']).toBe(ids[2]);
});

test('every printable character may be in it, a space too', async () => {
  expect(await idOf('a b ~!"')).toBe('a b ~!"');
});

test('128 characters are the most', async () => {
  expect(await idOf('x'.repeat(128))).toBe('x'.repeat(128));
  expect(await idOf('x'.repeat(129))).not.toContain('xxx');
});

test.each(['', 'caf\u00e9', 'tab\there', '\u00ff'])('%j is no id: one is made', async (given) => {
  const answer = await sendRaw(
    spine.origin,
    Buffer.from(`GET /api/v1/ping HTTP/1.1\r\nhost: x\r\nx-request-id: ${given}\r\n\r\n`, 'latin1'),
  );
  expect(answer.status).toBe(200);
  expect(answer.headers['x-request-id']).toMatch(/^req-/);
});

test('every answer has one, also errors and what needs no key', async () => {
  for (const [path, status] of [
    ['/models', 200],
    ['/nowhere', 404],
    ['/key', 401],
    ['/generation', 400],
  ] as const) {
    const response = await spine.get(path, {
      'x-request-id': 'mine',
      ...(path === '/key' ? { authorization: 'Bearer wrong' } : {}),
    });
    expect(response.status).toBe(status);
    expect(response.headers.get('x-request-id')).toBe('mine');
  }
});

test.each(['/mcp', '/a2a', '/api/v1/rpc', '/api/v1/chat/completions'])(
  'refusals of a credential and of a rate have one at %s, and name no call',
  async (path) => {
    const { key } = await spine.tenant(`refused${path.replaceAll('/', '-')}`, '1', { requestsPerMinute: 1 });
    const statusOf = async (by: string) => {
      const response = await fetch(spine.origin + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${by}`, 'x-request-id': 'mine' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/list' }),
      });
      await response.text();
      expect(response.headers.get('x-request-id')).toBe('mine');
      expect(response.headers.get('x-generation-id')).toBeNull();
      return response.status;
    };
    expect(await statusOf('svc-sk-v2-nobody')).toBe(401);
    await statusOf(key);
    expect(await statusOf(key)).toBe(429);
  },
);

test('metadata goes to the log, bounded, and not to the provider', async () => {
  const metadata = { team: 'billing', nested: { run: 7 } };
  await (await spine.post('/chat/completions', ask('hello', { metadata }))).text();
  await spine.quiet();
  expect(callLines().at(-1)).toMatchObject({ metadata });
  expect(spine.provider.log.at(-1)!.text).not.toContain('billing');

  await (await spine.post('/chat/completions', ask('hello', { metadata: { long: 'y'.repeat(50_000) } }))).text();
  await spine.quiet();
  expect(JSON.stringify(callLines().at(-1)).length).toBeLessThan(10_000);

  for (const wrong of ['text', 7, ['a'], true]) {
    const response = await spine.post('/chat/completions', ask('hello', { metadata: wrong }));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { param: 'metadata' } });
  }
});

test('line ends in an id cannot write a header or a line of the log', async () => {
  const answer = await sendRaw(
    spine.origin,
    'GET /api/v1/ping HTTP/1.1\r\nhost: x\r\nx-request-id: a\rset-cookie: b\r\n\r\n',
  );
  expect(answer.status).toBe(400);
  expect(answer.headers).not.toHaveProperty('set-cookie');
});
