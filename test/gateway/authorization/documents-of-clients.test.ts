import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as sdkV2 from '@modelcontextprotocol/client';
import { startSpine, type Spine } from '../../support/spine.ts';
import { CALLBACK, createClientMemory } from './support/client-memory.ts';
import { startDocumentServer, type DocumentServer } from './support/document-server.ts';
import { createPerson } from './support/person.ts';
import { RAW_CALLBACK, registerRaw } from './support/raw-client.ts';

/* Clients that name themselves by the address of a document (CIMD). Its host vouches for it, and is a stranger. */

const LONG = 'x'.repeat(20_000);
/** 20 MB in 20 KB. */
const BOMB = gzipSync(JSON.stringify({ client_uri: 'x'.repeat(20_000_000) }));
const TOML = '[limits]\nanonymous_requests_per_minute = 1000\n';

let documents: DocumentServer;
let spine: Spine;
beforeAll(async () => {
  documents = await startDocumentServer((path, origin, response) => {
    const json = (body: object, status = 200, headers = {}) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
    const good = {
      client_id: origin + path,
      client_name: 'Good',
      redirect_uris: [RAW_CALLBACK, CALLBACK],
      token_endpoint_auth_method: 'none',
    };
    const name = path.split('?', 1)[0]!;
    if (name.startsWith('/good'))
      return json({ ...good, scope: 'openid everything', software_version: '1' }, 200, {
        'cache-control': 'max-age=60',
      });
    if (name === '/lying')
      return json({ ...good, client_name: `\u202eClaude by Anthropic\n(verified) <b>${'!'.repeat(100)}` });
    if (name === '/another-id') return json({ ...good, client_id: `${origin}/good` });
    if (name === '/secret') return json({ ...good, client_secret: 'x' });
    if (name === '/secret-method') return json({ ...good, token_endpoint_auth_method: 'client_secret_post' });
    if (name === '/elsewhere') return json({ ...good, redirect_uris: ['http://evil.example/callback'] });
    if (name === '/long') return json({ ...good, client_uri: LONG });
    if (name === '/deep') return response.writeHead(200).end('{"client_id":'.repeat(5_000));
    if (name === '/list') return json([good]);
    if (name === '/error') return json(good, 500);
    if (name === '/moved') return json(good, 302, { location: `${origin}/good` });
    if (name === '/silent') return;
    if (name === '/bomb') return response.writeHead(200, { 'content-encoding': 'gzip' }).end(BOMB);
    if (name === '/drip') {
      const drip = setInterval(() => response.write(' '), 20);
      return response.on('close', () => clearInterval(drip));
    }
    return json({}, 404);
  });
  spine = await startSpine({ mode: 'development', toml: `${TOML}[webhooks]\nallow_private = true\n` });
});
afterAll(async () => {
  await spine.stop();
  await documents.close();
});

const timesAsked = (path: string) => documents.asked.filter((asked) => asked === path).length;

test('an unmodified client with a document signs in without a registration, and its host is shown', async () => {
  const memory = createClientMemory({ document: `${documents.origin}/good` });
  const person = createPerson(spine.origin, spine.key);
  await sdkV2.auth(memory.provider, { serverUrl: `${spine.origin}/mcp` });
  expect(memory.opened().searchParams.get('client_id')).toBe(`${documents.origin}/good`);
  const page = await person.open(memory.opened().href);
  expect(await (await person.look(page)).json()).toMatchObject({
    data: { name: 'Good', document: `${documents.origin}/good`, sends_to: null },
  });
  const answer = await person.allow(page);
  expect(
    await sdkV2.auth(memory.provider, {
      serverUrl: `${spine.origin}/mcp`,
      authorizationCode: answer.searchParams.get('code')!,
      iss: answer.searchParams.get('iss')!,
    }),
  ).toBe('AUTHORIZED');
  const { data } = (await (await spine.get('/keys')).json()) as {
    readonly data: readonly { readonly client: string }[];
  };
  expect(data.at(-1)!.client).toBe(documents.origin);
  // It is fetched once, and known for as long as it says.
  expect(timesAsked('/good')).toBe(1);
});

test.each([
  '/another-id',
  '/secret',
  '/secret-method',
  '/elsewhere',
  '/long',
  '/deep',
  '/list',
  '/error',
  '/moved',
  '/silent',
  '/drip',
  '/bomb',
  '/none',
])('a client whose document is not right is refused: %s', async (path) => {
  const client = await registerRaw(spine.origin, { id: documents.origin + path });
  const response = await fetch(client.authorizeUrl(), { redirect: 'manual' });
  expect([response.status, response.headers.get('location')]).toEqual([400, null]);
  expect(await response.text()).toMatch(/invalid_(client|client_metadata|redirect_uri)/);
  expect(timesAsked(path)).toBe(1);
});

test.each([
  ['http', (origin: string) => origin.replace('https:', 'http:')],
  ['a user', (origin: string) => origin.replace('https://', 'https://claude.ai@')],
  ['a fragment', (origin: string) => `${origin}/good#x`],
  ['dots', (origin: string) => `${origin}/x/../good`],
  ['a backslash', (origin: string) => `${origin}\\good`],
])('an address of a document with %s is never fetched', async (_what, idOf) => {
  const before = documents.asked.length;
  const client = await registerRaw(spine.origin, { id: idOf(documents.origin) });
  const response = await fetch(client.authorizeUrl(), { redirect: 'manual' });
  expect(response.status).toBe(400);
  expect(documents.asked.length).toBe(before);
});

test('a name that lies is cleaned, and the host that vouches for it stands beside it', async () => {
  const client = await registerRaw(spine.origin, { id: `${documents.origin}/lying` });
  const person = createPerson(spine.origin, spine.key);
  const { data } = (await (await person.look(await person.open(client.authorizeUrl()))).json()) as {
    readonly data: { readonly name: string; readonly document: string };
  };
  expect(data.name.length).toBeLessThanOrEqual(64);
  expect(data.name).not.toMatch(/[\p{C}\n]/u);
  expect(new URL(data.document).origin).toBe(documents.origin);
});

test.each([
  ['marks that cover the lines above', `a${'\u0336\u0301'.repeat(30)}`, 'a\u0336\u0301\u0336\u0301'],
  ['a filler of Hangul', '\u3164', null],
  ['the empty cell of Braille', '\u2800\u2800', null],
  ['a selector of variants', '\ufe0f', null],
  ['spaces', ' \u00a0 ', null],
  ['the other direction', '\u202eedualC\u2066', 'edualC'],
  ['tags that nobody sees', 'Claude\u{e0041}', 'Claude'],
  ['lines', 'Claude\n\u2028Checked', 'ClaudeChecked'],
  ['a script of its own', '\u05e9\u05dc\u05d5\u05dd', '\u05e9\u05dc\u05d5\u05dd'],
  ['points and accents', 'Phở 東京 ที่นี่', 'Phở 東京 ที่นี่'],
])('a name with %s is text that is seen, or none', async (_what, name, shown) => {
  const client = await registerRaw(spine.origin, { client_name: name });
  const person = createPerson(spine.origin, spine.key);
  const { data } = (await (await person.look(await person.open(client.authorizeUrl()))).json()) as {
    readonly data: { readonly name: string | null };
  };
  expect(data.name).toBe(shown);
});

test('no document of this machine or its networks is fetched, unless the operator allows it', async () => {
  const guarded = await startSpine({
    mode: 'development',
    toml: `${TOML}[webhooks]\nallow_private = false\n`,
  });
  try {
    const before = documents.asked.length;
    for (const host of [
      documents.origin,
      documents.origin.replace('localhost', '127.0.0.1'),
      'https://169.254.169.254',
      'https://[::1]',
      'https://10.0.0.1',
      'https://[::ffff:127.0.0.1]',
      'https://0x7f000001',
    ]) {
      const client = await registerRaw(guarded.origin, { id: `${host}/good` });
      const response = await fetch(client.authorizeUrl(), { redirect: 'manual' });
      expect([host, response.status]).toEqual([host, 400]);
      const told = await response.text();
      expect(told).toContain('cannot read the document at client_id');
      expect(told).not.toContain('ECONN');
    }
    expect(documents.asked.length).toBe(before);
  } finally {
    await guarded.stop();
  }
});

test('an operator turns documents and registration off', async () => {
  const closed = await startSpine({
    mode: 'development',
    toml: `${TOML}[authorization]\nclient_documents = false\nregistration = false\n[webhooks]\nallow_private = true\n`,
  });
  try {
    const metadata = (await (await fetch(`${closed.origin}/.well-known/oauth-authorization-server`)).json()) as object;
    expect(metadata).toMatchObject({ client_id_metadata_document_supported: false });
    expect(metadata).not.toHaveProperty('registration_endpoint');
    expect((await fetch(`${closed.origin}/oauth/register`, { method: 'POST' })).status).toBe(404);
    const before = documents.asked.length;
    const client = await registerRaw(closed.origin, { id: `${documents.origin}/good2` });
    expect((await fetch(client.authorizeUrl(), { redirect: 'manual' })).status).toBe(400);
    expect(documents.asked.length).toBe(before);
  } finally {
    await closed.stop();
  }
});

test("the operator's issuer stays beside the gateway's own", async () => {
  const both = await startSpine({
    mode: 'development',
    toml: `[oauth]\nissuer = "https://idp.example"\nscopes = ["mcp"]\n[authorization]\nenabled = true\n`,
  });
  try {
    const metadata = await fetch(`${both.origin}/.well-known/oauth-protected-resource/mcp`);
    expect(await metadata.json()).toMatchObject({
      authorization_servers: [both.origin, 'https://idp.example'],
      scopes_supported: ['call', 'mcp'],
    });
  } finally {
    await both.stop();
  }
});

test('a production gateway has no authorization server until its file says so', async () => {
  const production = await startSpine();
  try {
    for (const path of [
      '/oauth/authorize',
      '/.well-known/oauth-authorization-server',
      '/.well-known/openid-configuration',
      '/.well-known/oauth-protected-resource/mcp',
    ])
      expect([path, (await fetch(production.origin + path)).status]).toEqual([path, 404]);
    expect((await fetch(`${production.url}/key`)).headers.get('www-authenticate')).not.toContain('resource_metadata');
  } finally {
    await production.stop();
  }
});
