import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { escrowOf } from '#billing';
import { type Primitive, PRIMITIVES } from '#config';
import { ENDPOINTS, NATIVE_PEER, PEER, type PeerDoor } from './peers/routes.ts';
import { startPeerProvider, type PeerProvider } from './peers/peer-provider.ts';
import { peerServices } from './peers/services.ts';
import { startSpine, UNHURRIED, type Spine } from './support/spine.ts';

// A key may call what its patterns say, whatever the primitive and whatever the route. One table, every route.

type Named = typeof PEER | typeof NATIVE_PEER | 'the tool do';
const namedBy = ({ primitive, service }: PeerDoor): Named =>
  primitive === 'tool' ? 'the tool do' : ((service ?? PEER) as Named);

interface AccessRow {
  readonly patterns: readonly string[];
  readonly allows: readonly Named[];
  /** The kinds of services of these names. Without it all kinds. */
  readonly kinds?: readonly Primitive[];
}

const TABLE: readonly AccessRow[] = [
  { patterns: [`${PEER}/do`], allows: ['the tool do'] },
  { patterns: [`${PEER}/*`], allows: ['the tool do'] },
  { patterns: [PEER], allows: [PEER, 'the tool do'] },
  { patterns: [PEER, `-${PEER}/do`], allows: [PEER] },
  { patterns: [`-${PEER}/d*`, PEER], allows: [PEER] },
  { patterns: ['peer/*', `-${PEER}`], allows: [NATIVE_PEER] },
  { patterns: ['*', `-${PEER}/*`], allows: [PEER, NATIVE_PEER] },
  { patterns: ['peer/*'], allows: [PEER, NATIVE_PEER, 'the tool do'] },
  { patterns: [`tool:${PEER}/do`], allows: ['the tool do'], kinds: ['tool'] },
  { patterns: ['model:peer/*'], allows: [PEER, NATIVE_PEER], kinds: ['model'] },
  { patterns: [`agent:${PEER}`, 'video:*'], allows: [PEER], kinds: ['agent', 'video'] },
  { patterns: ['*', '-tool:*', '-image:*'], allows: [PEER, NATIVE_PEER], kinds: ['model', 'agent', 'video'] },
];

let provider: PeerProvider;
let spine: Spine;
beforeAll(async () => {
  provider = await startPeerProvider();
  spine = await startSpine({ toml: UNHURRIED + peerServices(provider) });
  // The tools of the aggregate are known once the server was asked.
  await vi.waitFor(async () => expect(await toolsAt(spine.key, '/mcp')).toContain('peer_all__do'), 60_000);
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  await provider.close();
});

async function rpc(key: string, path: string, method: string, params: object = {}) {
  const response = await fetch(spine.origin + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  return (await response.json()) as {
    readonly result?: { readonly tools?: readonly { readonly name: string }[]; readonly structuredContent?: object };
    readonly error?: { readonly code: number; readonly message: string };
  };
}

async function toolsAt(key: string, path: string): Promise<readonly string[]> {
  return (await rpc(key, path, 'tools/list')).result!.tools!.map(({ name }) => name);
}

let tenants = 0;
describe.each(TABLE)('$patterns', ({ patterns, allows, kinds = PRIMITIVES }) => {
  const may = (named: Named, kind: Primitive) => allows.includes(named) && kinds.includes(kind);
  const mayTool = may('the tool do', 'tool');

  test.each(ENDPOINTS)('$name', async (door) => {
    const { account, key } = await spine.tenant(`access-${(tenants += 1)}`, '1', { allowedServices: patterns });
    const [calls, before] = [provider.calls(), await spine.app.ledger.balance(escrowOf(account))];
    const outcome = await door.call({ origin: spine.origin, key, text: `complete ${tenants}` });
    if (may(namedBy(door), door.primitive))
      return expect(outcome).toMatchObject({
        kind: 'answered',
        said: expect.stringContaining('did complete') as string,
      });
    expect(outcome.kind).not.toBe('answered');
    expect(outcome.raw).toMatch(/This API key may not use (?:the tool do of )?peer\/|There is no tool ask_/);
    expect(provider.calls()).toBe(calls);
    expect(await spine.app.ledger.balance(escrowOf(account))).toEqual(before);
  });

  test('lists have what may be called, and nothing else', async () => {
    const { key } = await spine.tenant(`access-${(tenants += 1)}`, '1', { allowedServices: patterns });
    const headers = { authorization: `Bearer ${key}` };
    const has = (names: readonly string[], name: string, isAllowed: boolean) =>
      expect(names.includes(name), `${name} of ${names.join()}`).toBe(isAllowed);

    has(await toolsAt(key, '/mcp'), 'peer_all__do', mayTool);
    has(await toolsAt(key, '/mcp'), 'ask_agent', may(PEER, 'agent'));
    const own = await rpc(key, `/mcp/${PEER}`, 'tools/list');
    if (mayTool) expect(own.result!.tools).toMatchObject([{ name: 'do' }]);
    else expect(own.result?.tools ?? []).toEqual([]);
    const asked = await rpc(key, `/mcp/a2a/${PEER}`, 'tools/list');
    expect(asked.error ?? null).toEqual(
      may(PEER, 'agent')
        ? null
        : expect.objectContaining({ code: -32012, data: { type: 'permission_denied', param: 'name' } }),
    );
    for (const query of ['do', '']) {
      const found = await rpc(key, '/mcp', 'tools/call', { name: 'find_tools', arguments: { query } });
      const { tools, searched } = found.result!.structuredContent as {
        tools: { name: string }[];
        searched: number;
      };
      has(
        tools.map(({ name }) => name),
        'peer_all__do',
        mayTool,
      );
      expect(searched).toBe(mayTool ? 1 : 0);
    }

    const listed = async (query: string, member: string) => {
      const page = (await (await fetch(`${spine.origin}/api/v1/models${query}`, { headers })).json()) as object;
      return (page as Record<string, { id: string }[]>)[member]!.map(({ id }) => id);
    };
    for (const list of ['', '/user']) {
      has(await listed(list, 'data'), PEER, may(PEER, 'model'));
      has(await listed(list, 'data'), NATIVE_PEER, may(NATIVE_PEER, 'model'));
      has(await listed(list, 'agents'), PEER, may(PEER, 'agent'));
      expect((await listed(list, 'tools')).includes(PEER)).toBe(mayTool || may(PEER, 'tool'));
      has(await listed(`${list}?type=image`, 'image_models'), PEER, may(PEER, 'image'));
      has(await listed(`${list}?type=video`, 'video_models'), PEER, may(PEER, 'video'));
    }
    for (const kind of ['image', 'video'] as const) {
      const page = (await (await fetch(`${spine.origin}/api/v1/${kind}s/models`, { headers })).json()) as {
        data: { id: string }[];
      };
      has(
        page.data.map(({ id }) => id),
        PEER,
        may(PEER, kind),
      );
    }
    const gemini = await fetch(`${spine.origin}/api/v1beta/models`, { headers });
    const { models } = (await gemini.json()) as { models: { name: string }[] };
    has(
      models.map(({ name }) => name),
      `models/${PEER}`,
      may(PEER, 'model'),
    );

    const card = await fetch(`${spine.origin}/.well-known/agent-card.json`, { headers });
    const { skills } = (await card.json()) as { skills: { id: string }[] };
    has(
      skills.map(({ id }) => id),
      PEER,
      may(PEER, 'agent'),
    );
    for (const [service, isAllowed] of [
      [PEER, may(PEER, 'agent')],
      [`model/${NATIVE_PEER}`, may(NATIVE_PEER, 'model')],
      [`mcp/${PEER}/do`, mayTool],
    ] as const) {
      const { status } = await fetch(`${spine.origin}/a2a/${service}/.well-known/agent-card.json`, { headers });
      expect([service, status]).toEqual([service, isAllowed ? 200 : 403]);
    }
  });
});

test('a key without patterns, and nobody at all, see everything', async () => {
  for (const headers of [{}, { authorization: `Bearer ${spine.key}` }, { authorization: 'Bearer svc-sk-unknown' }]) {
    const { data } = (await (await fetch(`${spine.origin}/api/v1/models`, { headers })).json()) as { data: object[] };
    expect(data.map((one) => (one as { id: string }).id)).toEqual(expect.arrayContaining([PEER, NATIVE_PEER]));
  }
});
