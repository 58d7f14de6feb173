import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WIRES } from '../peers/wires.ts';
import { fill, routesOf, type Route } from '../support/route-table.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// A walk over every route that the server has: what belongs to somebody needs a credential, and an id of somebody
// else is an unknown id.

/** Open to anybody. A new route is closed until it is put here. */
const PUBLIC: readonly RegExp[] = [
  /^\/$/,
  /^\/openapi\.json$/,
  /^\/docs(\/|$)/,
  /^\/favicon\.svg$/,
  /^\/llms\.txt$/,
  /^\/health\/(live|ready)$/,
  /^\/\.well-known\/(jwks|agent|agent-card)\.json$/,
  /^\/api\/v1\/\.well-known\/agent(-card)?\.json$/,
  /^(\/api\/v1)?\/sse$/,
  /\/a2a\/\*\/\.well-known\/agent-card\.json$/,
  // Who has the sealed address may tell of one task.
  /^\/a2a\/~push\/\*$/,
  // Each entry is refused by the route that it asks for.
  /^\/api\/v1\/rpc$/,
  // Pages are the same for everybody: what they show they ask for.
  /^\/(marketplace|models|tools|agents|images|videos|providers|rankings|playground|sign-in|authorize|dashboard|admin|assets)(\/(?!v1\/)|$)/,
  // Nobody is signed in: that is an answer too.
  /^\/api\/v1\/auth\/session$/,
  /^\/api\/v1beta\/models(\/:model)?$/,
  /^\/api\/v1\/(services(\/:primitive(\/\*)?)?|analytics\/public|analytics\/service(\/.*)?)$/,
  /^\/api\/v1\/(ping|auth\/nonce|payments\/chains|models|models\/count|models\/\*|models\/:author\/:slug\/endpoints|(images|videos|embeddings)\/models|images\/models\/:author\/:slug\/endpoints|model\/:author\/:slug|providers|providers\/:id|prices\/:id|tools|agents|agents\/\*)$/,
];
/** Where proxies dial in: a request that is no dial is told so, whoever sends it. */
const isTunnel = ({ path }: Route) => path === '/api/v1/provider/tunnel';
/** Who asks whether an operator is signed in, or signs out, may have no session. The admin key begins one. */
const isOperatorsSession = ({ method, path }: Route) => path === '/admin/v1/session' && method !== 'POST';
const isPublic = (route: Route) => isOperatorsSession(route) || PUBLIC.some((pattern) => pattern.test(route.path));
const isAdmin = (route: Route) =>
  !isOperatorsSession(route) && (route.path.startsWith('/admin/v1/') || route.path === '/metrics');

let spine: Spine;
let owner: { key: string; hash: string; account: string };
let stranger: { key: string; hash: string; account: string };
let routes: readonly Route[];
/** One id of each kind that belongs to the owner. */
let owned: { generation: string; hash: string };

beforeAll(async () => {
  // Many wrong keys come from one address here.
  spine = await startSpine({ toml: `${UNHURRIED}[sign_in]\nfailures_per_minute = 1000000\n` });
  owner = await spine.tenant('owner', '1');
  stranger = await spine.tenant('stranger', '1');
  routes = routesOf(spine.app.server).filter((route) => !isTunnel(route));
  const response = await spine.post(
    '/chat/completions',
    ask('the secret of the owner !tokens:3', { metadata: { canary: 'owner-canary' } }),
    {
      authorization: `Bearer ${owner.key}`,
    },
  );
  await response.text();
  owned = { generation: response.headers.get('x-generation-id')!, hash: owner.hash };
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});

const call = async (route: Route, path: string, key: string | null, body?: unknown) => {
  const response = await fetch(spine.origin + path, {
    method: route.method,
    headers: {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, text: await response.text() };
};

test('the table is read whole', () => {
  expect(routes.length).toBeGreaterThan(20);
  for (const path of [
    '/api/v1/chat/completions',
    '/api/v1/keys/:hash',
    '/api/v1/generation',
    '/admin/v1/accounts/:id/keys/:hash',
  ])
    expect(routes.map((route) => route.path)).toContain(path);
});

/** The wire that a route is of. */
const ofWire = (path: string) =>
  WIRES.find(
    (wire) =>
      path === wire.path ||
      path.startsWith(`${wire.path}/`) ||
      (wire.sent !== undefined && path.startsWith(wire.path.slice(0, wire.path.indexOf('{')))),
  );

test('every route that is not public refuses without a credential, before it looks at anything else', async () => {
  const closed = routes.filter((route) => !isPublic(route));
  expect(closed.length).toBeGreaterThan(10);
  for (const route of closed) {
    // It is GET without a body.
    if (route.method === 'HEAD') continue;
    const answer = await call(route, fill(route.path, { hash: owner.hash, id: owner.account }), null);
    expect(answer.status, `${route.method} ${route.path}`).toBe(401);
    if (/\/a2a(\/|$)/.test(route.path)) {
      // In the words of either binding.
      expect(answer.text, route.path).toMatch(/"code":-32010|"reason":"UNAUTHORIZED"/);
      continue;
    }
    if (route.path.endsWith('/v2/rerank')) {
      // Cohere's form has no code.
      expect(JSON.parse(answer.text), route.path).toMatchObject({ message: expect.stringMatching(/^No API key: /) });
      continue;
    }
    const error = /\/mcp(\/|$)/.test(route.path)
      ? { code: -32010, data: { type: 'unauthorized' } }
      : (ofWire(route.path)?.unauthorized ?? {
          type: 'unauthorized',
          code: /\/(?:image|video)\//.test(route.path) ? 'unauthorized' : 401,
        });
    expect(JSON.parse(answer.text), route.path).toMatchObject({ error });
  }
});

test('every public route answers without one, and tells nothing of anybody', async () => {
  for (const route of routes.filter(isPublic)) {
    const answer = await call(route, fill(route.path, { model: 'test/model', '*': 'test/model' }), null);
    expect(answer.status, `${route.method} ${route.path}`).toBeLessThan(405);
    for (const secret of [owner.account, owner.hash, owned.generation, 'owner-canary', spine.key])
      expect(answer.text, route.path).not.toContain(secret);
  }
});

test('the administration takes the admin key alone, and the admin key opens nothing else', async () => {
  for (const route of routes.filter(isAdmin)) {
    for (const key of [owner.key, spine.key, `${spine.adminKey}x`, spine.adminKey.slice(0, -1)]) {
      const answer = await call(route, fill(route.path, { hash: owner.hash, id: owner.account }), key);
      expect(answer.status, `${route.method} ${route.path}`).toBe(401);
    }
  }
  for (const route of routes.filter((one) => !isAdmin(one) && !isPublic(one))) {
    expect((await call(route, fill(route.path, {}), spine.adminKey)).status, route.path).toBe(401);
  }
});

describe("another tenant's ids are unknown ids", () => {
  /** Requests with an id in them, from the route table; the query's ids are of routes that take one there. */
  const withId = (ids: { generation: string; hash: string }) =>
    routes
      .filter((route) => !isAdmin(route) && !isPublic(route))
      .flatMap((route) => {
        const requests: { route: Route; path: string; body?: unknown }[] = [];
        // A month is no id.
        if (/\/:(?!month)\w/.test(route.path))
          requests.push({
            route,
            path: fill(route.path, { hash: ids.hash, id: ids.generation }),
            ...(route.method === 'PATCH' ? { body: { name: 'stolen' } } : {}),
            ...(route.path.endsWith('/rotate') ? { body: {} } : {}),
            ...(route.path.endsWith('/approvals/:id') ? { body: { decision: 'refuse' } } : {}),
          });
        if (route.path.endsWith('/generation')) requests.push({ route, path: `${route.path}?id=${ids.generation}` });
        return requests;
      });

  test('they get the very answer of an id that nobody has', async () => {
    const taken = withId(owned);
    const unknown = withId({ generation: 'gen-nobody', hash: '0'.repeat(64) });
    expect(taken.length).toBeGreaterThanOrEqual(3);
    for (const [index, request] of taken.entries()) {
      const answer = await call(request.route, request.path, stranger.key, request.body);
      expect(answer.status, request.path).toBe(404);
      expect(answer).toEqual(await call(request.route, unknown[index]!.path, stranger.key, request.body));
    }
    // Nothing of it had an effect.
    const key = await spine.app.keys.find(owner.hash);
    expect(key).toMatchObject({ label: 'owner', disabled: false });
    expect((await spine.generation(owned.generation, owner.key)).id).toBe(owned.generation);
  });

  test('lists hold what is the own alone', async () => {
    for (const route of routes.filter(
      (one) => one.method === 'GET' && !isAdmin(one) && !isPublic(one) && !one.path.includes(':'),
    )) {
      const answer = await call(route, route.path, stranger.key);
      for (const secret of [owner.account, owner.hash, owned.generation, 'owner-canary'])
        expect(answer.text, route.path).not.toContain(secret);
    }
  });

  test('an admin path with a key of one account and the id of another is 404', async () => {
    const path = `/admin/v1/accounts/${encodeURIComponent(stranger.account)}/keys/${owner.hash}`;
    for (const method of ['PATCH', 'DELETE'])
      expect((await call({ method, path }, path, spine.adminKey, { name: 'x' })).status).toBe(404);
    expect(await spine.app.keys.find(owner.hash)).toMatchObject({ label: 'owner' });
  });
});

test("one tenant's stream has no byte of another's", async () => {
  const streams = await Promise.all(
    Array.from({ length: 30 }, async (_, index) => {
      const key = index % 2 ? owner.key : stranger.key;
      const response = await spine.post(
        '/chat/completions',
        ask(`hello !tokens:${10 + index} !split:${index + 1}`, { stream: true, max_tokens: 100 }),
        { authorization: `Bearer ${key}` },
      );
      return { index, id: response.headers.get('x-generation-id')!, text: await response.text() };
    }),
  );
  const ids = streams.map(({ id }) => id);
  expect(new Set(ids).size).toBe(30);
  for (const { index, id, text } of streams) {
    for (const other of ids) expect(text.includes(other)).toBe(other === id);
    expect(text).toContain(`"completion_tokens":${10 + index}`);
  }
});
