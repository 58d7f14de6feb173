import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createMcpHandler } from '@modelcontextprotocol/server';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeHeaderValue, encodeHeaderValue, standardHeaders } from '../../src/mcp/wire/param-headers.ts';
import { SCHEMAS, headerTools } from './support/header-tools.ts';
import { anyCharacter } from '../support/any-character.ts';

const TOOLS = ['plain', 'one', 'all'];

interface Sent {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly headers: Headers;
}

/** A client of the SDK at a server of the SDK, and the requests between them. */
async function connect() {
  const handler = createMcpHandler(() => headerTools(TOOLS));
  const sent: Sent[] = [];
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await client.connect(
    new StreamableHTTPClientTransport(new URL('http://127.0.0.1/mcp'), {
      async fetch(url, init) {
        const request = new Request(url, init);
        if (request.method === 'POST')
          sent.push({ ...((await request.clone().json()) as Omit<Sent, 'headers'>), headers: request.headers });
        return handler.fetch(request);
      },
    }),
  );
  return { client, sent, close: () => Promise.all([client.close(), handler.close()]) };
}

const mcpHeaders = (headers: Headers) =>
  Object.fromEntries([...headers].filter(([name]) => /^mcp-(?:method|name|param-)/.test(name)));
const lower = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

describe('the headers of a request that the gateway makes', () => {
  it('are those that a client of the SDK sends', async () => {
    const { client, sent, close } = await connect();
    await client.listTools();
    for (const name of TOOLS)
      for (const city of ['Oslo', 'Tromsø', '', ' a ', '=?base64?QQ==?=', 'a\tb', 'line\nbreak', '🌍', '\u00a0'])
        await client.callTool({ name, arguments: { city, count: 42, dry: false, where: { street: { name: 'Å' } } } });
    await client.callTool({ name: 'one', arguments: {} });
    await client.callTool({ name: 'one' });
    await client.getPrompt({ name: 'añadir' });
    await client.readResource({ uri: 'a://b/1' });
    const calls = sent.filter(({ method }) => method !== 'server/discover');
    expect(calls).toHaveLength(1 + 27 + 2 + 2);
    for (const { method, params, headers } of calls) {
      const schema = method === 'tools/call' ? SCHEMAS[params['name'] as string] : null;
      expect(lower(standardHeaders(method, params, schema))).toEqual(mcpHeaders(headers));
    }
    await close();
  });

  it('name nothing that is not there', () => {
    expect(standardHeaders('tools/list', undefined, null)).toEqual({ 'Mcp-Method': 'tools/list' });
    expect(standardHeaders('tools/call', { name: 1 }, null)).toEqual({ 'Mcp-Method': 'tools/call' });
    expect(standardHeaders('tools/call', { name: 'one', arguments: { city: 'Oslo' } }, null)).toEqual({
      'Mcp-Method': 'tools/call',
      'Mcp-Name': 'one',
    });
    expect(standardHeaders('constructor', { name: 'one' }, SCHEMAS['one'])).toEqual({ 'Mcp-Method': 'constructor' });
  });

  it('carry every text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: anyCharacter }), fc.string()), (text) => {
        fc.pre(text.isWellFormed());
        const value = encodeHeaderValue(text);
        expect(value).toMatch(/^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/);
        expect(decodeHeaderValue(value)).toBe(text);
      }),
    );
  });
});
