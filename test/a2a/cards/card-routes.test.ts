import { expect, test } from 'vitest';
import { agentOffer, RICH_CARD, startAgent, startGateway } from './support/card-world.ts';

const ROOT = '/.well-known/agent-card.json';
const PATH = '/a2a/acme/writer/.well-known/agent-card.json';

test.each([
  ROOT,
  '/.well-known/agent.json',
  PATH,
  '/a2a/acme/writer/.well-known/agent.json',
  `/api/v1${PATH}`,
  '/api/v1/a2a/acme/writer/.well-known/agent.json?x=1',
])('GET and HEAD %s, without a credential', async (path) => {
  const gateway = await startGateway({ offers: [agentOffer()] });
  const reply = await gateway.get(path);
  expect(reply.status).toBe(200);
  expect(Object.fromEntries(reply.headers)).toMatchObject({
    etag: expect.stringMatching(/^"[\w-]{22}"$/) as unknown,
    vary: 'A2A-Version, Authorization, x-api-key',
    'cache-control': 'public, max-age=300',
    'content-type': 'application/json; charset=utf-8',
    'access-control-allow-origin': '*',
  });
  const head = await fetch(gateway.url + path, { method: 'HEAD' });
  expect([head.status, head.headers.get('etag'), await head.text()]).toEqual([200, reply.headers.get('etag'), '']);
  // Wherever it was asked for, the address is one.
  const { url } = (await reply.json()) as { readonly url: string };
  expect(url).toBe(path.includes('acme') ? `${gateway.url}/a2a/acme/writer` : `${gateway.url}/a2a`);
});

test('a client that has the card is told so, in each form by itself', async () => {
  const gateway = await startGateway({ offers: [agentOffer()] });
  for (const path of [ROOT, PATH]) {
    const [plain, modern] = [
      (await gateway.get(path)).headers.get('etag')!,
      (await gateway.get(path, '1.0')).headers.get('etag')!,
    ];
    expect(plain).not.toBe(modern);
    for (const known of [modern, `"other", ${modern}`, `W/${modern}`, '*']) {
      const reply = await gateway.get(path, '1.0', { 'if-none-match': known });
      expect([reply.status, await reply.text(), reply.headers.get('etag'), reply.headers.get('vary')]).toEqual([
        304,
        '',
        modern,
        'A2A-Version, Authorization, x-api-key',
      ]);
    }
    expect((await gateway.get(path, '1.0', { 'if-none-match': plain })).status).toBe(200);
  }
});

test('the tag changes with the agent’s card, the catalogue and the price', async () => {
  const agent = await startAgent(RICH_CARD);
  const gateway = await startGateway({ offers: [agentOffer()] });
  const tags: (string | null)[] = [];
  const see = async () => tags.push((await gateway.get(PATH)).headers.get('etag'));
  await see();
  gateway.catalog.replace('test', [agentOffer({ more: { description: 'Another.' } })]);
  await see();
  gateway.catalog.replace('test', [agentOffer({ baseUrl: agent.url })]);
  await see();
  const dear = agentOffer({ baseUrl: agent.url });
  gateway.catalog.replace('test', [{ ...dear, price: { ...dear.price, rates: { call: 1_000_000_000n } } }]);
  await see();
  expect(new Set(tags).size).toBe(4);
  await see();
  expect(tags.at(-1)).toBe(tags.at(-2));
});

test.each(['/a2a/nobody/.well-known/agent-card.json', '/api/v1/a2a/acme/%3Cb%3E/.well-known/agent.json'])(
  'an agent that is not here is not found: %s',
  async (path) => {
    const gateway = await startGateway({ offers: [agentOffer()] });
    const reply = await gateway.get(path);
    expect(reply.status).toBe(404);
    expect(await reply.json()).toMatchObject({ error: { type: 'not_found', code: 404, param: null } });
  },
);

test('an address that lacks its last part, or only a slash, is told which there are', async () => {
  const gateway = await startGateway({ offers: [agentOffer(), agentOffer({ service: 'acme/reader' })] });
  const reply = await gateway.get('/a2a/acme/.well-known/agent-card.json');
  expect(reply.status).toBe(404);
  expect(await reply.text()).toContain(
    `There is acme/writer, acme/reader: end the address with a slash, such as ${gateway.url}/a2a/acme/writer/`,
  );
});

test.each(['/a2a', '/api/v1/a2a', '/api/v1'])('the card of the gateway is below %s as well', async (below) => {
  const gateway = await startGateway({ offers: [agentOffer()] });
  for (const file of ['agent-card.json', 'agent.json'])
    expect((await gateway.card(`${below}/.well-known/${file}`))['url']).toBe(`${gateway.url}/a2a`);
});

test('the version may stand in the address, and a header goes before it', async () => {
  const gateway = await startGateway({ offers: [agentOffer()] });
  for (const path of [ROOT, PATH]) {
    const modern = (await gateway.get(path, '1.0')).headers.get('etag');
    expect((await gateway.get(`${path}?A2A-Version=1.0`)).headers.get('etag')).toBe(modern);
    expect((await gateway.get(`${path}?a2a-version=1.0.1`)).headers.get('etag')).toBe(modern);
    expect((await gateway.get(`${path}?A2A-Version=0.3`, '1.0')).headers.get('etag')).toBe(modern);
  }
});

test('says since when a card is as it is, where it is the operator\u2019s address', async () => {
  let date = Date.UTC(2026, 0, 2, 3, 4, 5);
  const gateway = await startGateway({ offers: [agentOffer()], publicUrl: 'https://gate.example', date: () => date });
  const since = async () => (await gateway.get(PATH)).headers.get('last-modified');
  expect(await since()).toBe('Fri, 02 Jan 2026 03:04:05 GMT');
  date += 60_000;
  expect(await since()).toBe('Fri, 02 Jan 2026 03:04:05 GMT');
  gateway.catalog.replace('test', [agentOffer({ more: { description: 'Another.' } })]);
  expect(await since()).toBe('Fri, 02 Jan 2026 03:05:05 GMT');
});

test('a provider that was pinned stays so', async () => {
  const gateway = await startGateway({ offers: [agentOffer(), agentOffer({ provider: 'other' })] });
  const card = await gateway.card('/a2a/id-other:acme/writer/.well-known/agent-card.json');
  expect(card['url']).toBe(`${gateway.url}/a2a/id-other:acme/writer`);
});

test('the doors may have the same wildcard, with a hook that refuses', async () => {
  const gateway = await startGatewayWithDoors();
  expect((await gateway.get(PATH)).status).toBe(200);
  expect((await gateway.get('/a2a/acme/writer/tasks/1')).status).toBe(401);
  expect((await gateway.get('/a2a/acme/writer/.well-known/other.json')).status).toBe(401);
  expect((await fetch(gateway.url + PATH, { method: 'POST' })).status).toBe(401);
});

test('only a Host that the operator named gets a signed card; a name that could be a stranger’s is not in it', async () => {
  const gateway = await startGateway({ offers: [agentOffer()], publicUrl: null, domains: ['gate.example:8443'] });
  const at = async (host: string) => {
    const { statusCode, json } = await gateway.server.inject({ url: PATH, headers: { host } });
    return [statusCode, json()] as const;
  };
  const [, known] = await at('gate.example:8443');
  expect(known).toMatchObject({ url: 'http://gate.example:8443/a2a/acme/writer', signatures: [{}, {}] });
  for (const [host, origin] of [
    ['gateway:8402', 'http://gateway:8402'],
    ['gate.example:1', 'http://gate.example:1'],
    ['evil.example', gateway.url],
  ] as const) {
    const [, card] = await at(host);
    expect(card).toMatchObject({ url: `${origin}/a2a/acme/writer` });
    expect(card).not.toHaveProperty('signatures');
  }
  const [status, refused] = await at('evil.example/path?');
  expect(status).toBe(400);
  expect(refused).toMatchObject({ error: { type: 'invalid_request', param: 'Host' } });
});

test('a gateway that listens at every address, and does not know its name, says what is missing', async () => {
  const gateway = await startGateway({ offers: [agentOffer()], publicUrl: null, everywhere: true });
  const { statusCode, json } = await gateway.server.inject({ url: PATH, headers: { host: 'gate.example' } });
  expect([statusCode, json()]).toMatchObject([
    400,
    { error: { type: 'invalid_request', param: 'Host', message: expect.stringContaining('server.public_url') } },
  ]);
});

async function startGatewayWithDoors() {
  return startGateway({
    offers: [agentOffer()],
    mount: async (server) => {
      await server.register(async (endpoints) => {
        endpoints.addHook('onRequest', async (_request, reply) => reply.code(401).send({}));
        endpoints.route({ method: ['GET', 'POST'], url: '/a2a/*', handler: () => ({}) });
      });
    },
  });
}
