import { createHash, randomUUID } from 'node:crypto';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { toolBlock } from '../../mcp/conformance/tool-block.ts';
import { startMcpFixture, type McpFixture } from '../../support/mcp-fixture.ts';
import { startSpine, type Spine } from '../../support/spine.ts';
import { startDocumentServer, type DocumentServer } from './support/document-server.ts';
import { endGrant, grantsOf } from './support/grants.ts';
import { createPerson } from './support/person.ts';

/*
 * The requests of the servers of two hosted assistants, one by one, as their documents and the logs of operators have
 * them on 2026-11-28. Only the host of their documents is another one, and the assistant's own page is not opened.
 *
 * Claude: claude.com/docs/connectors/building/authentication; support.anthropic.com, article 11503834;
 * github.com/anthropics/claude-ai-mcp, issues 96 and 217; brendanlong/lion-reader, issue 986.
 * ChatGPT: developers.openai.com/apps-sdk/build/auth and /plugins/build/auth; Altinity/altinity-mcp, issue 118;
 * logto-io/logto, issue 9627; community.openai.com, topic 1366784.
 */

let fixture: McpFixture;
let documents: DocumentServer;
let spine: Spine;
let keys: Awaited<ReturnType<typeof generateKeyPair>>;
/** By how much the clock of the gateway is ahead. */
let ahead = 0;
beforeAll(async () => {
  keys = await generateKeyPair('RS256');
  const jwk = { ...(await exportJWK(keys.publicKey)), kid: 'cimd-1', alg: 'RS256', use: 'sig' };
  fixture = await startMcpFixture();
  documents = await startDocumentServer((path, origin, response) => {
    const documentOf = path === '/oauth/jwks.json' ? () => ({ keys: [jwk] }) : DOCUMENTS[path];
    response
      .writeHead(documentOf === undefined ? 404 : 200, { 'content-type': 'application/json' })
      .end(JSON.stringify(documentOf?.(origin) ?? {}));
  });
  spine = await startSpine({
    mode: 'development',
    toml: `[webhooks]\nallow_private = true\n${toolBlock('acme/tools', fixture.url)}`,
    now: () => Date.now() + ahead,
  });
});
afterAll(async () => {
  await spine.stop();
  await documents.close();
  await fixture.close();
});

const OF_CLAUDE = 'https://claude.ai/api/mcp/auth_callback';
const ALSO_OF_CLAUDE = 'https://claude.com/api/mcp/auth_callback';
const OF_CHATGPT = 'https://chatgpt.com/connector/oauth/kDmjx77UnKOM';
const OLD_OF_CHATGPT = 'https://chatgpt.com/connector_platform_oauth_redirect';
const GRANTS = { grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] };

const DOCUMENTS: Readonly<Record<string, (origin: string) => object>> = {
  '/oauth/mcp-oauth-client-metadata': (origin) => ({
    client_id: `${origin}/oauth/mcp-oauth-client-metadata`,
    client_name: 'Claude',
    client_uri: 'https://claude.ai',
    redirect_uris: [OF_CLAUDE, ALSO_OF_CLAUDE],
    ...GRANTS,
    token_endpoint_auth_method: 'none',
  }),
  '/oauth/kDmjx77UnKOM/client.json': (origin) => ({
    client_id: `${origin}/oauth/kDmjx77UnKOM/client.json`,
    client_name: 'ChatGPT',
    client_uri: 'https://chatgpt.com/',
    redirect_uris: [OF_CHATGPT],
    ...GRANTS,
    token_endpoint_auth_method: 'private_key_jwt',
    token_endpoint_auth_methods_supported: ['none', 'private_key_jwt'],
    token_endpoint_auth_signing_alg: 'RS256',
    jwks_uri: `${origin}/oauth/jwks.json`,
  }),
};

interface Connector {
  /** Its description in a registration; null if it names its document instead. */
  readonly registration: object | null;
  readonly document?: string;
  readonly redirectUri: string;
  /** What its authorization request has besides what all have. */
  readonly asks: Readonly<Record<string, string>>;
  /** How it authenticates itself at the token endpoint. */
  readonly proof: 'none' | 'client_secret_post' | 'private_key_jwt';
  readonly shownAs: { readonly name: string; readonly sendsTo: string };
}

const CONNECTORS: Readonly<Record<string, Connector>> = {
  'Claude, by its document': {
    registration: null,
    document: '/oauth/mcp-oauth-client-metadata',
    redirectUri: OF_CLAUDE,
    asks: { scope: ' offline_access', prompt: 'consent' },
    proof: 'none',
    shownAs: { name: 'Claude', sendsTo: 'claude.ai' },
  },
  'Claude, which registers itself': {
    registration: { client_name: 'Claude', redirect_uris: [OF_CLAUDE], ...GRANTS, scope: 'call' },
    redirectUri: OF_CLAUDE,
    asks: { scope: 'call' },
    proof: 'client_secret_post',
    shownAs: { name: 'Claude', sendsTo: 'claude.ai' },
  },
  'Claude at its other host': {
    registration: { client_name: 'Claude', redirect_uris: [OF_CLAUDE, ALSO_OF_CLAUDE], ...GRANTS },
    redirectUri: ALSO_OF_CLAUDE,
    asks: { scope: 'call' },
    proof: 'none',
    shownAs: { name: 'Claude', sendsTo: 'claude.com' },
  },
  'ChatGPT, by its document': {
    registration: null,
    document: '/oauth/kDmjx77UnKOM/client.json',
    redirectUri: OF_CHATGPT,
    asks: { scope: 'openid email offline_access profile', ui_locales: 'en-US' },
    proof: 'private_key_jwt',
    shownAs: { name: 'ChatGPT', sendsTo: 'chatgpt.com' },
  },
  'ChatGPT, which registers itself': {
    registration: { client_name: 'ChatGPT', redirect_uris: [OLD_OF_CHATGPT], ...GRANTS },
    redirectUri: OLD_OF_CHATGPT,
    // A second connection names no scope.
    asks: {},
    proof: 'none',
    shownAs: { name: 'ChatGPT', sendsTo: 'chatgpt.com' },
  },
};

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Readonly<Record<string, never>>;
}
interface Metadata {
  readonly token_endpoint: string;
  readonly registration_endpoint: string;
  readonly authorization_endpoint: string;
}

const AGENTS = { claude: 'python-httpx/0.28.1', chatgpt: 'openai-mcp/1.0.0' };

describe.each(Object.entries(CONNECTORS))('%s', (name, connector) => {
  const verifier = 'a'.repeat(21) + randomUUID().replaceAll('-', '');
  const agent = name.startsWith('Claude') ? AGENTS.claude : AGENTS.chatgpt;
  /** What the assistant keeps between its requests. */
  const memory: Record<string, string> = {};
  let metadata: Metadata;

  const send = async (url: string, init: RequestInit = {}): Promise<Reply> => {
    const response = await fetch(url, {
      redirect: 'manual',
      ...init,
      headers: { 'user-agent': agent, accept: 'application/json, text/event-stream', ...(init.headers as object) },
    });
    const text = await response.text();
    const data = /^data: (.*)$/m.exec(text)?.[1] ?? text;
    return { status: response.status, headers: response.headers, body: (data === '' ? {} : JSON.parse(data)) as never };
  };
  const post = (url: string, body: object, headers = {}) =>
    send(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  const endpoint = () => `${spine.origin}/mcp/acme/tools`;
  const mcp = (method: string, params: object, token?: string) =>
    post(
      endpoint(),
      { jsonrpc: '2.0', id: 1, method, params },
      token === undefined ? {} : { authorization: `Bearer ${token}`, 'mcp-protocol-version': '2025-11-25' },
    );
  const initialize = (token?: string) =>
    mcp(
      'initialize',
      { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'hosted', version: '1' } },
      token,
    );
  const proof = async (): Promise<Record<string, string>> => {
    const { clientId = '', clientSecret = '' } = memory;
    if (connector.proof === 'client_secret_post') return { client_id: clientId, client_secret: clientSecret };
    if (connector.proof === 'none') return { client_id: clientId };
    const assertion = await new SignJWT({ jti: randomUUID() })
      .setProtectedHeader({ alg: 'RS256', kid: 'cimd-1' })
      .setIssuer(clientId)
      .setSubject(clientId)
      .setAudience(metadata.token_endpoint)
      .setIssuedAt()
      .setExpirationTime('5m')
      .sign(keys.privateKey);
    return {
      client_id: clientId,
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: assertion,
    };
  };
  const token = async (fields: Record<string, string>) =>
    send(metadata.token_endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ ...fields, ...(await proof()) }).toString(),
    });

  /** One row for each request, in their order. */
  const REQUESTS: readonly (readonly [string, () => Promise<void>])[] = [
    [
      'POST to the address without a token',
      async () => {
        const { status, headers } = await initialize();
        expect(status).toBe(401);
        expect(headers.get('www-authenticate')).toMatch(
          `Bearer realm="tollgate", scope="call", resource_metadata="${spine.origin}/.well-known/oauth-protected-resource/mcp/acme/tools"`,
        );
      },
    ],
    [
      'GET the metadata of the resource, which the answer names',
      async () => {
        const { status, body } = await send(`${spine.origin}/.well-known/oauth-protected-resource/mcp/acme/tools`);
        expect([status, body]).toMatchObject([
          200,
          { resource: endpoint(), authorization_servers: [spine.origin], scopes_supported: ['call'] },
        ]);
      },
    ],
    [
      'GET the metadata at the root',
      async () => {
        const { status, body } = await send(`${spine.origin}/.well-known/oauth-protected-resource`);
        expect([status, body]).toMatchObject([200, { resource: spine.origin, authorization_servers: [spine.origin] }]);
      },
    ],
    [
      'GET the metadata of the authorization server, which decides how it names itself',
      async () => {
        const { status, body } = await send(`${spine.origin}/.well-known/oauth-authorization-server`);
        expect([status, body]).toMatchObject([
          200,
          {
            issuer: spine.origin,
            client_id_metadata_document_supported: true,
            code_challenge_methods_supported: ['S256'],
            token_endpoint_auth_methods_supported: expect.arrayContaining([
              'none',
              'client_secret_post',
              'private_key_jwt',
            ]),
            token_endpoint_auth_signing_alg_values_supported: expect.arrayContaining(['RS256']),
            registration_endpoint: expect.any(String),
          },
        ]);
        metadata = body as unknown as Metadata;
        expect((await send(`${spine.origin}/.well-known/openid-configuration`)).body).toEqual(body);
      },
    ],
    [
      'POST its registration, if it has no document',
      async () => {
        if (connector.registration === null) {
          memory['clientId'] = documents.origin + connector.document!;
          return;
        }
        const { status, body } = await post(metadata.registration_endpoint, {
          ...connector.registration,
          token_endpoint_auth_method: connector.proof,
        });
        expect([status, body]).toMatchObject([
          201,
          { redirect_uris: expect.arrayContaining([connector.redirectUri]), ...GRANTS },
        ]);
        memory['clientId'] = body['client_id']!;
        memory['clientSecret'] = (body['client_secret'] as string | undefined) ?? '';
      },
    ],
    [
      'GET the page, in the browser of the person, who agrees',
      async () => {
        const person = createPerson(spine.origin, spine.key);
        const query = new URLSearchParams({
          response_type: 'code',
          client_id: memory['clientId']!,
          redirect_uri: connector.redirectUri,
          code_challenge: createHash('sha256').update(verifier).digest('base64url'),
          code_challenge_method: 'S256',
          state: 'oauth_s_1',
          resource: endpoint(),
          ...connector.asks,
        });
        const page = await person.open(`${metadata.authorization_endpoint}?${query}`);
        const { document } = connector;
        expect(await (await person.look(page)).json()).toMatchObject({
          data: {
            name: connector.shownAs.name,
            document: document === undefined ? null : documents.origin + document,
            sends_to: connector.shownAs.sendsTo,
            resources: [endpoint()],
          },
        });
        const answer = await person.allow(page);
        expect(answer.origin + answer.pathname).toBe(connector.redirectUri);
        expect(Object.fromEntries(answer.searchParams)).toEqual({
          code: expect.any(String),
          state: 'oauth_s_1',
          iss: spine.origin,
        });
        memory['code'] = answer.searchParams.get('code')!;
      },
    ],
    [
      'POST the code',
      async () => {
        const { status, body, headers } = await token({
          grant_type: 'authorization_code',
          code: memory['code']!,
          redirect_uri: connector.redirectUri,
          code_verifier: verifier,
          resource: endpoint(),
        });
        expect([status, body]).toEqual([
          200,
          {
            access_token: expect.any(String),
            refresh_token: expect.any(String),
            token_type: 'Bearer',
            expires_in: 3_600,
            scope: 'call',
          },
        ]);
        expect(headers.get('cache-control')).toBe('no-store');
        memory['access'] = body['access_token']!;
        memory['refresh'] = body['refresh_token']!;
      },
    ],
    [
      'POST a call of a tool with the token',
      async () => {
        expect(await initialize(memory['access'])).toMatchObject({
          status: 200,
          body: { result: { protocolVersion: '2025-11-25' } },
        });
        expect((await mcp('tools/list', {}, memory['access'])).status).toBe(200);
        const { status, body } = await mcp('tools/call', { name: 'test_simple_text', arguments: {} }, memory['access']);
        expect([status, body]).toMatchObject([200, { result: { content: [{ type: 'text' }] } }]);
      },
    ],
    [
      'POST with the token after an hour',
      async () => {
        ahead += 60 * 60_000;
        const { status, headers } = await initialize(memory['access']);
        expect(status).toBe(401);
        expect(headers.get('www-authenticate')).toContain('error="invalid_token"');
        expect(headers.get('www-authenticate')).toContain('resource_metadata="');
      },
    ],
    [
      'POST the refresh token',
      async () => {
        const { status, body } = await token({
          grant_type: 'refresh_token',
          refresh_token: memory['refresh']!,
          resource: endpoint(),
        });
        expect([status, body]).toMatchObject([200, { token_type: 'Bearer', expires_in: 3_600 }]);
        expect(body['refresh_token']).not.toBe(memory['refresh']);
        memory['access'] = body['access_token']!;
        memory['refresh'] = body['refresh_token']!;
        expect((await initialize(memory['access'])).status).toBe(200);
      },
    ],
    [
      'POST anything once the person has taken the grant away',
      async () => {
        await endGrant(spine, (await grantsOf(spine)).at(-1)!);
        expect((await initialize(memory['access'])).status).toBe(401);
        const fields = { grant_type: 'refresh_token', refresh_token: memory['refresh']! };
        expect(await token(fields)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
      },
    ],
    [
      'POST of a client that is gone, which tells it to register anew',
      async () => {
        if (connector.registration === null) return;
        memory['clientId'] = 'gone';
        const fields = { grant_type: 'refresh_token', refresh_token: memory['refresh']! };
        expect(await token(fields)).toMatchObject({ status: 401, body: { error: 'invalid_client' } });
      },
    ],
  ];

  test.each(REQUESTS)('%s', async (_name, act) => act());
});

test('the calls are paid, and nothing else is', async () => {
  expect(await spine.faults()).toEqual([]);
  expect((await spine.balance()).locked).toBe(0n);
});
