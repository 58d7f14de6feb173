import { describe, expect, test } from 'vitest';
import { sendRaw } from '../support/raw-http.ts';
import { ask, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// What is not there, and what is no HTTP: always the one shape of an error, never a stack, never a 500.

const spine = spineOfFile(() => ({ toml: UNHURRIED }));

function expectError(answer: { readonly status: number; readonly body: string }, status: number, type: string): void {
  expect(answer.status, answer.body).toBe(status);
  const { error } = JSON.parse(answer.body) as { error: Record<string, unknown> };
  expect(Object.keys(error).sort()).toEqual(['code', 'message', 'param', 'type']);
  expect(error).toMatchObject({ type, code: status });
  expect(error['message']).toBeTypeOf('string');
  expect(answer.body).not.toMatch(/node_modules|\.ts:|at \w+ \(/);
}
const request = async (method: string, path: string, headers: Record<string, string> = {}) => {
  const response = await fetch(`${spine.origin}${path}`, {
    method,
    headers: { authorization: `Bearer ${spine.key}`, ...headers },
  });
  return { status: response.status, body: await response.text() };
};

test.each([
  ['GET', '/'.repeat(3)],
  ['GET', '/nowhere'],
  ['GET', '/api'],
  ['GET', '/api/v1'],
  ['GET', '/api/v1/nowhere'],
  ['POST', '/api/v1/nowhere'],
  ['GET', '/api/v2/models'],
  ['GET', '/api/v1/models/'.slice(0, -1) + 'x'],
  ['GET', '/api/v1/../../etc/passwd'],
  ['GET', '/api/v1/__proto__'],
  ['GET', '/api/v1/nowhere/'],
  ['GET', '/api/v1//key'],
  ['GET', '/admin/'],
  ['GET', '/.env'],
])('%s %s', async (method, path) => {
  expectError(await request(method, path), 404, 'not_found');
});

test.each([
  ['GET', '/api/v1/chat/completions'],
  ['PUT', '/api/v1/chat/completions'],
  ['DELETE', '/api/v1/chat/completions'],
  ['PATCH', '/api/v1/chat/completions'],
  ['POST', '/api/v1/models'],
  ['DELETE', '/api/v1/key'],
  ['PUT', '/api/v1/keys/x'],
])('%s %s: no such method there', async (method, path) => {
  expectError(await request(method, path), 405, 'method_not_allowed');
});

test.each(['/api/v1/models/%', '/api/v1/models/%zz', '/%c0%af', '/api/v1/keys/%e0%a4%a'])(
  'a path that does not decode: %s',
  async (path) => {
    const answer = await sendRaw(
      spine.origin,
      `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${spine.key}\r\n\r\n`,
    );
    expectError(answer, 400, 'invalid_request');
  },
);

describe('what is no HTTP', () => {
  test.each([
    ['garbage', 'hello\r\n\r\n', 400],
    ['a TLS greeting', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400],
    ['an unknown method', 'BREW / HTTP/1.1\r\nhost: x\r\n\r\n', 400],
    [
      'two lengths',
      'POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}',
      400,
    ],
    [
      'a length and chunks',
      'POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
      400,
    ],
    ['a length that is none', 'POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n', 400],
    ['chunks that are none', 'POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: zz\r\n\r\n', 400],
    [
      'chunks that are none, of a key that is known',
      'POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer KEY\r\ntransfer-encoding: zz\r\n\r\n',
      400,
    ],
    ['a header name with a space', 'GET /api/v1/ping HTTP/1.1\r\nhost: x\r\nx y: z\r\n\r\n', 400],
    ['a folded header', 'GET /api/v1/ping HTTP/1.1\r\nhost: x\r\nx-a: b\r\n c\r\n\r\n', 400],
    ['headers of 40 KB', `GET /api/v1/ping HTTP/1.1\r\nhost: x\r\nx-a: ${'b'.repeat(40_000)}\r\n\r\n`, 431],
  ])('%s', async (_name, bytes, status) => {
    // A key that was just used is known at once, so the request could be answered before Node finds its fault.
    if (bytes.includes('KEY')) expect((await request('GET', '/api/v1/key')).status).toBe(200);
    const answer = await sendRaw(spine.origin, bytes.replace('KEY', spine.key));
    expectError(answer, status, 'invalid_request');
    expect(answer.headers['content-type']).toContain('application/json');
    expect(answer.headers['connection']).toBe('close');
  });
});

test('no host', async () => {
  expect((await sendRaw(spine.origin, 'GET /api/v1/ping HTTP/1.1\r\n\r\n')).status).toBe(400);
});

test('who asks whether to send its body is told to', async () => {
  const body = JSON.stringify(ask('hello'));
  const head = `POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${spine.key}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ${body.length}\r\n`;
  const answer = await sendRaw(spine.origin, `${head}expect: 100-continue\r\n\r\n${body}`);
  expect(answer.status).toBe(100);
  expect(answer.body).toContain('HTTP/1.1 200 OK');
});

test('a JSON body is answered in JSON whatever is accepted', async () => {
  for (const accept of ['text/html', 'application/xml', '*/*', 'text/event-stream']) {
    const response = await fetch(`${spine.origin}/api/v1/nowhere`, { headers: { accept } });
    expect(response.headers.get('content-type')).toContain('application/json');
  }
});

test.each([
  ['GET', '/api/v1/keys/'],
  ['DELETE', '/api/v1/keys/'],
  ['GET', '/api/v1/videos/'],
  ['GET', '/api/v1/providers/'],
])('a name that is too long is unknown: %s %s', async (method, path) => {
  const answer = await request(method, path + 'x'.repeat(600));
  expectError(answer, 404, 'not_found');
  expect(answer.body).not.toContain('xxx');
  expect(answer.body).toContain('512 characters');
  // As any other name, to a key that is wrong.
  const stranger = await request(method, path + 'x'.repeat(600), { authorization: 'Bearer svc-sk-wrong' });
  const short = await request(method, `${path}x`, { authorization: 'Bearer svc-sk-wrong' });
  expect(stranger.status).toBe(short.status === 401 ? 401 : 404);
});
