import { request, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { spineOfFile } from '../../support/of-file.ts';

// A protocol that an address does not speak is refused by its own code: clients such as Codex then send plain requests
// at once, and try again after anything else.

const spine = spineOfFile();

async function handshake(path: string, headers: Record<string, string> = {}) {
  const { hostname, port } = new URL(spine.origin);
  const sent = request({
    hostname,
    port,
    path,
    headers: {
      authorization: `Bearer ${spine.key}`,
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      ...headers,
    },
  });
  sent.end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  let text = '';
  for await (const chunk of answer) text += String(chunk);
  return { status: answer.statusCode, upgrade: answer.headers.upgrade, text };
}

test.each([
  '/v1/chat/completions',
  '/api/v1/chat/completions',
  '/v1/messages',
  '/v1/models',
  '/v1/responses/resp_1',
  '/mcp',
  '/health/ready',
])('%s', async (path) => {
  const { status, upgrade, text } = await handshake(path);
  expect([status, upgrade]).toEqual([426, 'HTTP/1.1']);
  expect(text).toContain(`${path} takes no WebSockets`);
});

test('an address that does not exist is not found', async () => {
  expect((await handshake('/v1/no-such-path')).status).toBe(404);
});

test('another protocol of the header is ignored, as HTTP allows', async () => {
  expect((await handshake('/health/ready', { upgrade: 'h2c' })).status).toBe(200);
});
