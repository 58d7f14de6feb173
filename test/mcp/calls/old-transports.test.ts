import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { expect, test } from 'vitest';
import { spineOfFile } from '../../support/of-file.ts';

// HTTP+SSE, the transport of MCP 2024-11-05, is not served. A client that tries it, and whoever looks with curl, is
// told which one is.

const spine = spineOfFile();

const get = async (path: string, accept: string, more: Record<string, string> = {}) => {
  const headers = { authorization: `Bearer ${spine.key}`, accept, ...more };
  const reply = await fetch(`${spine.origin}${path}`, { headers });
  return { status: reply.status, allow: reply.headers.get('allow'), text: await reply.text() };
};

test.each(['/mcp', '/mcp/acme/search', '/api/v1/mcp'])('GET %s names the transports', async (path) => {
  for (const accept of ['text/event-stream', 'text/html']) {
    const { status, allow, text } = await get(path, accept);
    expect([status, allow]).toEqual([405, 'POST, DELETE']);
    expect(text).toContain('This address supports Streamable HTTP');
    expect(text).toContain('The HTTP+SSE transport of 2024-11-05 is not served');
  }
});

test('GET of a session that accepts no events is told of them', async () => {
  const { status, allow, text } = await get('/mcp', 'text/html', { 'mcp-session-id': 'one' });
  expect([status, allow]).toEqual([406, null]);
  expect(text).toContain('This address supports Streamable HTTP');
});

test.each(['/sse', '/api/v1/sse'])('%s says where to go', async (path) => {
  expect(await get(path, 'text/event-stream')).toMatchObject({
    status: 404,
    text: expect.stringContaining('Connect to /mcp'),
  });
});

test('a client of the old transport is told by the error that it shows', async () => {
  const requestInit = { headers: { authorization: `Bearer ${spine.key}` } };
  const client = new Client({ name: 'test', version: '1' });
  await expect(client.connect(new SSEClientTransport(new URL(`${spine.origin}/mcp`), { requestInit }))).rejects.toThrow(
    '405',
  );
});
