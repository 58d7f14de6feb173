import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { WebSocketServer } from 'ws';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ServiceConfig, MediaFacts } from '../../../src/server/config/service.ts';
import { TUNNEL_PROTOCOL } from '../../../src/gateway/network/tunnel-wire.ts';
import { createLog } from '../../../src/providers/proxy/log.ts';
import { providerChecks, runChecks } from '../../../src/providers/proxy/probe/checks.ts';
import type { CheckResult } from '../../../src/providers/proxy/probe/ask.ts';
import { agentAt, modelAt, toolAt, toolOfScript } from '../../support/provider-proxy.ts';
import { startProvider, type TestProvider } from '../../support/provider.ts';
import { findFreePort } from '../../support/free-port.ts';

/** What the router says about paying earnings. */
const TERMS = 'The operator says about payouts: by bank transfer.';
const SCRIPT = fileURLToPath(new URL('../../support/stdio-mcp-server.ts', import.meta.url));

let provider: TestProvider;
let server: Server;
let url: string;
let answer: (request: IncomingMessage, response: ServerResponse, body: string) => void;
beforeEach(async () => {
  provider = await startProvider();
  server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += String(chunk);
    if (request.url === '/api/v1/ping') response.end('pong');
    else if (request.url === '/api/v1/provider/services')
      json(
        response,
        { payout_terms: { summary: TERMS }, error: { message: 'Invalid API key' } },
        request.headers.authorization === 'Bearer k' ? 200 : 401,
      );
    else if (request.url === '/mcp' && request.method === 'GET') json(response, {}, 401);
    else answer(request, response, body);
  });
  server.on('upgrade', (request, wire, head) => sockets.handleUpgrade(request, wire, head, () => {}));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  await provider.stop();
  server.closeAllConnections();
  server.close();
});

const sockets = new WebSocketServer({ noServer: true, clientTracking: false, handleProtocols: () => TUNNEL_PROTOCOL });
const log = createLog({ level: 'silent', style: 'json', secrets: [], write() {}, now: Date.now });

/** All results; the first three are of the credential, the router and the tunnel. */
async function probe(
  services: readonly ServiceConfig[],
  router = url,
  apiKey = 'k',
): Promise<{ ok: boolean; results: (CheckResult & { kind: string })[] }> {
  const config = {
    file: null,
    router: { url: router, domain: 'x', wallet: null, apiKey },
    services,
    providers: [],
    packages: { wall: 'if_available' as const },
  };
  const results: (CheckResult & { kind: string })[] = [];
  const checks = providerChecks(config, null, { env: { PATH: process.env['PATH'] }, version: '1', log }, Date.now);
  const ok = await runChecks(checks, Date.now, ({ kind }, result) => results.push({ ...result, kind }));
  return { ok, results };
}
const details = async (service: ServiceConfig) =>
  (await probe([service])).results.slice(3).map(({ ok, detail }) => `${ok ? '✓' : '✗'} ${detail}`);
const json = (response: ServerResponse, value: unknown, status = 200) =>
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));

it('a router that answers', async () => {
  expect((await probe([])).results).toMatchObject([
    { kind: 'API key', ok: true, detail: 'is set, so this provider signs in with it and not with a wallet' },
    { kind: 'router', ok: true, detail: `answers, and accepts the API key. ${TERMS}` },
    { kind: 'tunnel', ok: true, detail: 'a WebSocket gets through' },
  ]);
});

it('a router that does not let this provider in', async () => {
  const { ok, results } = await probe([], url, 'mistyped');
  expect(ok).toBe(false);
  expect(results[1]).toMatchObject({ ok: false, detail: 'answers, but does not accept the API key: Invalid API key' });
});

it('a router that speaks no TLS, at an address with https', async () => {
  const { results } = await probe([], url.replace('http:', 'https:'));
  expect(results[1]).toMatchObject({
    ok: false,
    detail: "does not answer: the server doesn't speak TLS; did you mean http://?",
  });
});

it.each([
  ['that is not there', async () => `http://127.0.0.1:${await findFreePort()}`, /^does not answer: .*ECONNREFUSED/],
  ['that is another server', async () => provider.url, /^answers with status 404: no GET/],
])('a router %s', async (_what, address, wrong) => {
  const { ok, results } = await probe([], await address());
  expect(ok).toBe(false);
  expect(results[1]).toMatchObject({ kind: 'router', ok: false, detail: expect.stringMatching(wrong) });
});

/** A model whose file says all of its cap. */
const declared = (at: string) => modelAt('m', at, undefined, { cap: 'max_tokens', maxOutputTokens: 64 });

describe('a model', () => {
  it('is asked for one token, whole and streamed, and for what its file says it gives', async () => {
    expect(await details(declared(provider.url))).toEqual(
      ['✓ answers, usage 2 + 1 tokens', '✓ streams, usage 2 + 1 tokens'].map((text) =>
        expect.stringMatching(text.replace('+', '\\+').replace('2', '\\d+')),
      ),
    );
    const asked = provider.log.map(({ body }) => body as Record<string, unknown>);
    expect(asked).toHaveLength(3);
    expect(asked[0]).toMatchObject({ model: 'test/model', max_tokens: 1 });
    expect(asked).toContainEqual(
      expect.objectContaining({ max_tokens: 1, stream: true, stream_options: { include_usage: true } }),
    );
    expect(asked).toContainEqual(expect.objectContaining({ max_tokens: 64 }));
    for (const { headers } of provider.log) expect(headers.authorization).toBe('Bearer upstream-key-canary');
  });

  it.each([
    [
      { usage: 'none' },
      'the answer has no usage, so calls would earn nothing',
      'streaming: the last chunk before [DONE] has no usage, so calls would earn nothing',
    ],
    [
      { usage: 'negative' },
      /the answer has a usage whose \w+ is not a number of tokens/,
      /streaming: .* is not a number of tokens/,
    ],
    [{ usage: 'strings' }, /is not a number of tokens/, /is not a number of tokens/],
    [{ noDone: true }, null, 'streaming: the last line is not data: [DONE]'],
    [
      { status: 503 },
      'answers with status 503: the test provider was told to answer 503',
      'answers with status 503: the test provider was told to answer 503',
    ],
    [{ usage: 'no-total' }, null, null],
    [{ lineEnd: 'crlf' }, null, null],
  ] as const)('that %o', async (behaviour, whole, streamed) => {
    provider.instruct(behaviour, behaviour, behaviour);
    const { results } = await probe([declared(provider.url)]);
    for (const [index, wrong] of [whole, streamed].entries()) {
      const { ok, detail } = results[index + 3]!;
      expect([ok, detail]).toEqual(
        wrong === null
          ? [true, expect.any(String)]
          : [false, wrong instanceof RegExp ? expect.stringMatching(wrong) : wrong],
      );
    }
  });

  it('that does not stream at all', async () => {
    answer = (_request, response) => json(response, { choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } });
    expect(await details(declared(url))).toEqual([
      '✓ answers, usage 1 + 1 tokens',
      '✓ works, without streaming, usage 1 + 1 tokens',
    ]);
    expect((await probe([declared(url)])).results.at(-1)!.advice).toEqual([
      expect.stringContaining('who asks for a stream gets the whole answer at once') as string,
    ]);
    answer = (_request, response, body) =>
      body.includes('"stream":true')
        ? response.writeHead(200, { 'content-type': 'text/plain' }).end('hello')
        : json(response, { choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } });
    expect((await details(declared(url))).at(-1)).toBe(
      '✗ streaming: the content type is text/plain; right is text/event-stream',
    );
  });
});

it.each([
  [true, '✓ streams, usage 1 + 1 tokens'],
  [
    false,
    '✗ streaming without stream_options, which it refuses: the last chunk before [DONE] has no usage, so calls would earn nothing',
  ],
])('a model that refuses stream_options, and reports usage without them: %s', async (reports, streamed) => {
  const usage = { prompt_tokens: 1, completion_tokens: 1 };
  answer = (_request, response, body) => {
    if (body.includes('"stream_options"'))
      return json(response, { error: { message: 'Unrecognized request argument supplied: stream_options' } }, 400);
    if (!body.includes('"stream":true')) return json(response, { choices: [], usage });
    const chunk = JSON.stringify(reports ? { choices: [], usage } : { choices: [] });
    return response
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .end(`data: ${chunk}\n\ndata: ${chunk}\n\ndata: [DONE]\n\n`);
  };
  expect((await details(declared(url))).at(-1)).toBe(streamed);
  if (reports)
    expect((await probe([declared(url)])).results.at(-1)!.advice).toEqual([
      expect.stringContaining('it refuses stream_options') as string,
    ]);
});

describe('a tool', () => {
  const tools = { tools: [{ name: 'one' }, { name: 'two' }] };
  const legacy =
    (reply: (response: ServerResponse, message: object) => void) =>
    (request: IncomingMessage, response: ServerResponse, body: string) => {
      if (request.method === 'DELETE') return void response.writeHead(405).end();
      const { id, method } = JSON.parse(body) as { id?: number; method: string };
      if (id === undefined) return void response.writeHead(202).end();
      if (method === 'initialize')
        return void response
          .writeHead(200, { 'mcp-session-id': 's1', 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, result: { protocolVersion: '2025-06-18' } }));
      if (request.headers['mcp-session-id'] !== 's1' || request.headers['mcp-protocol-version'] !== '2025-06-18')
        return void json(response, {}, 400);
      reply(response, { jsonrpc: '2.0', id, result: tools });
    };

  it('at an address, with a session', async () => {
    answer = legacy((response, message) => json(response, message));
    expect(await details(toolAt('t', `${url}/mcp`, 'k'))).toEqual(['✓ 2 tools']);
  });

  it('names the tools that no client can read', async () => {
    answer = legacy((response, message) => {
      const broken = { name: 'old', inputSchema: { type: 'array' } };
      json(response, { ...message, result: { tools: [{ name: 'one' }, broken, { title: 'x' }] } });
    });
    expect(await details(toolAt('t', `${url}/mcp`))).toEqual([
      '✓ 1 tool; left out, because clients cannot read them: old (inputSchema.type must be "object"), one without a name (name must be a string of 1 to 256 characters)',
    ]);
  });

  it('at an address, that answers with events', async () => {
    answer = legacy((response, message) =>
      response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .end(`event: message\ndata: ${JSON.stringify(message)}\n\n`),
    );
    expect(await details(toolAt('t', `${url}/mcp`))).toEqual(['✓ 2 tools']);
  });

  it('at an address, of the revision without sessions', async () => {
    answer = (request, response, body) => {
      const { id, method, params } = JSON.parse(body) as {
        id: number;
        method: string;
        params?: { _meta?: Record<string, unknown> };
      };
      if (
        params?._meta?.['io.modelcontextprotocol/protocolVersion'] !== '2026-07-28' ||
        request.headers['mcp-method'] !== method
      )
        return void json(response, { jsonrpc: '2.0', id, error: { code: -32022, message: 'x' } }, 400);
      json(response, { jsonrpc: '2.0', id, result: { ...tools, resultType: 'complete' } });
    };
    expect(await details(toolAt('t', url))).toEqual(['✓ 2 tools']);
  });

  it.each([200, 400, 404])(
    'at an address, that has tools/list and tools/call alone and refuses the rest with status %i',
    async (refused) => {
      answer = (_request, response, body) => {
        const { id, method, params } = JSON.parse(body) as { id?: number; method: string; params?: object };
        if (method === 'tools/list' && params === undefined)
          return void json(response, { jsonrpc: '2.0', id, result: tools });
        json(response, { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } }, refused);
      };
      expect(await details(toolAt('t', url))).toEqual(['✓ 2 tools']);
    },
  );

  it('at an address, that is no MCP server', async () => {
    answer = (_request, response, body) => {
      const { id } = JSON.parse(body) as { id?: number };
      json(response, { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } });
    };
    expect(await details(toolAt('t', url))).toEqual(['✗ initialize is refused: Method not found']);
  });

  it('with a price for a tool that it does not have', async () => {
    answer = legacy((response, message) => json(response, message));
    const { service, target } = toolAt('t', url);
    const variants = { one: { call: 1n }, tow: { call: 1n } };
    expect(await details({ service: { ...service, variants }, target })).toEqual([
      '✗ the file sets prices for tools that it does not have: tow',
    ]);
  });

  it('that wants a key', async () => {
    answer = (_request, response) => json(response, { error: 'invalid_token' }, 401);
    expect(await details(toolAt('t', url))).toEqual(['✗ answers with status 401: invalid_token']);
  });

  it('that is a command', async () => {
    expect(await details(toolOfScript('t', SCRIPT))).toEqual(['✓ 3 tools']);
  });

  it('that is a command and does not start', async () => {
    expect(await details(toolOfScript('t', SCRIPT, ['start=fail']))).toEqual(['✗ the process exited with code 7']);
    expect(await details(toolOfScript('t', SCRIPT, [], {}, { command: '/nowhere' }))).toEqual([
      '✗ the process cannot be started (ENOENT)',
    ]);
  });
});

it('a tool whose address is redirected', async () => {
  answer = (_request, response) => response.writeHead(307, { location: '/tools/' }).end();
  expect(await details(toolAt('t', `${url}/tools`))).toEqual([
    '✗ answers with status 307, a redirect that is not followed. Write the address that it names: /tools/',
  ]);
});

describe('an agent', () => {
  it.each([
    [{ name: 'A', url: 'http://x', skills: [{}] }, '✓ the card of A, 1 skill'],
    [{ name: 'A', supportedInterfaces: [{ url: 'http://x' }] }, '✓ the card of A, 0 skills'],
    [{ url: 'http://x' }, '✗ the agent card has no name'],
    [{ name: 'A' }, '✓ the card of A, 0 skills; messages are posted to /a2a, because the card has no address'],
    [[], '✗ the agent card is not a JSON object'],
  ])('%j', async (card, detail) => {
    answer = ({ url: path }, response) =>
      json(response, card, path === '/agent/.well-known/agent-card.json' ? 200 : 404);
    expect(await details(agentAt('a', `${url}/agent`))).toEqual([detail]);
  });
});

it('an agent whose card is at the older address', async () => {
  answer = ({ url: path }, response) =>
    json(response, { name: 'A', skills: [{}] }, path === '/agent/.well-known/agent.json' ? 200 : 404);
  expect(await details(agentAt('a', `${url}/agent`))).toEqual([
    '✓ the card of A, 1 skill; messages are posted to /a2a, because the card has no address',
  ]);
});

it('an agent whose card is at the origin, and not below the endpoint', async () => {
  answer = ({ url: path }, response) =>
    json(response, { name: 'A', url: '/agent', skills: [] }, path === '/.well-known/agent-card.json' ? 200 : 404);
  expect(await details(agentAt('a', `${url}/agent`))).toEqual([
    `✗ has no card below /agent, but one at ${url}. Write endpoint = "${url}": the card has the path of the requests`,
  ]);
  expect(await details(agentAt('a', url))).toEqual(['✓ the card of A, 0 skills']);
});

it('an agent without a card', async () => {
  answer = (_request, response) => json(response, {}, 404);
  expect(await details(agentAt('a', `${url}/agent`))).toEqual([expect.stringMatching(/^✗ answers with status 404/)]);
});

describe('an API of images', () => {
  const image = (imageApi?: MediaFacts['imageApi'], primitive: 'image' | 'video' = 'image'): ServiceConfig => ({
    service: {
      primitive,
      name: 'i',
      displayName: 'I',
      providerName: 'Mine',
      description: '',
      rates: { image: 1n },
      variants: {},
      media: {
        upstreamModel: 'i',
        supportedParams: [],
        aspectRatios: [],
        formats: [],
        resolutions: [],
        durations: [],
        ...(imageApi ? { imageApi } : {}),
      },
    },
    target: { kind: 'http', url, apiKey: 'k' },
  });
  /** Answers a list of models with one status, and what is posted with another. */
  const statuses = (list: number, posted: number | ((path: string) => number)) => {
    answer = (request, response, body) => {
      if (request.method === 'GET') return json(response, {}, list);
      expect([body, request.headers.authorization]).toEqual(['{}', 'Bearer k']);
      json(response, {}, typeof posted === 'number' ? posted : posted(request.url!));
    };
  };

  it.each([
    [200, 400, '✓ answers, and accepts the key; it has /images/generations; nothing was generated'],
    [
      404,
      422,
      '✓ is reached; it has no list of models to try the key with (status 404); it has /images/generations; nothing was generated',
    ],
    [401, 400, '✗ does not accept the key: status 401'],
    [404, 401, '✗ does not accept the key: status 401'],
    [502, 400, '✗ answers with status 502'],
    [200, 404, '✗ has no POST /images/generations (status 404). Check params.api_base'],
    [
      200,
      503,
      '✓ answers, and accepts the key; it has /images/generations; it answers an empty request with status 503',
    ],
    [200, 302, '✗ answers an empty POST /images/generations with status 302; right is a refusal such as 400'],
    [
      200,
      200,
      '✓ answers, and accepts the key; it has /images/generations; it took an empty request (status 200) and may have charged for it',
    ],
  ])('with status %i, and %i for an empty request', async (list, posted, detail) => {
    statuses(list, posted);
    expect(await details(image())).toEqual([detail]);
  });

  it.each([
    ['openai', '/images/edits'],
    ['tollgate', '/image/edit'],
    ['openrouter', '/images'],
  ] as const)('that edits on the wire %s has the path for it', async (wire, path) => {
    const service = image({ wire, edits: true, body: 'multipart' });
    statuses(200, 400);
    expect((await details(service))[1]).toBe(`✓ it has ${path}; nothing was edited`);
    statuses(200, (asked) => (asked === path ? 404 : 400));
    expect((await details(service)).at(-1)).toBe(`✗ has no POST ${path} (status 404). Check params.api_base`);
  });

  it('of videos has the path for them', async () => {
    statuses(200, (path) => (path === '/videos' ? 422 : 404));
    expect(await details(image(undefined, 'video'))).toEqual([
      '✓ answers, and accepts the key; it has /videos; nothing was generated',
    ]);
  });
});

it('results come in the order of the file, and one that fails does not keep the others from running', async () => {
  provider.instruct({ headDelayMs: 200 });
  const { ok, results } = await probe([
    modelAt('slow', provider.url),
    toolOfScript('t', SCRIPT, ['start=fail']),
    modelAt('fast', provider.url),
  ]);
  expect(ok).toBe(false);
  expect(results.map(({ kind, ok: right }) => `${kind} ${right}`)).toEqual([
    'API key true',
    'router true',
    'tunnel true',
    'model true',
    'model true',
    'tool false',
    'model true',
    'model true',
  ]);
});
