import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, type Spine } from '../../support/spine.ts';
import { openRawServer } from '../modern-to-legacy/raw-legacy-server.ts';
import { toolToml } from './modern-post.ts';

// A cursor that leads nowhere would keep a client asking without end, at the address of one service as at /mcp.

type Page = (cursor: string | undefined) => readonly [names: readonly string[], nextCursor?: string];
const PAGES: Readonly<Record<string, Page>> = {
  three: (cursor = '0') => (cursor === '2' ? [['t2']] : [[`t${cursor}`], String(Number(cursor) + 1)]),
  empty: () => [['a', 'b'], ''],
  same: () => [['a', 'b'], 'again'],
  'the last page names itself': (cursor) => (cursor === undefined ? [['a'], 'last'] : [['b'], 'last']),
  turns: (cursor) => (cursor === 'x' ? [['b'], 'y'] : [['a'], 'x']),
};
const RIGHT: Readonly<Record<string, readonly string[]>> = { three: ['t0', 't1', 't2'] };

const LISTS = {
  'tools/list': ['tools', (name: string) => ({ name, inputSchema: { type: 'object' } })],
  'prompts/list': ['prompts', (name: string) => ({ name })],
  'resources/list': ['resources', (name: string) => ({ name, uri: `a:${name}` })],
  'resources/templates/list': ['resourceTemplates', (name: string) => ({ name, uriTemplate: `a:${name}` })],
} as const;

let spine: Spine;
const servers: Awaited<ReturnType<typeof openRawServer>>[] = [];
beforeAll(async () => {
  let toml = '';
  for (const [index, page] of Object.values(PAGES).entries()) {
    const server = await openRawServer(
      ({ message: { id, method, params } }) => {
        const [member, item] = LISTS[method as keyof typeof LISTS] ?? [];
        if (member === undefined) return JSON.stringify({ jsonrpc: '2.0', id, result: {} });
        const [names, nextCursor] = page(params?.['cursor'] as string | undefined);
        return JSON.stringify({
          jsonrpc: '2.0',
          id,
          result: { [member]: names.map((name) => item(name)), nextCursor },
        });
      },
      {
        initialized:
          '{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"raw","version":"1"}}',
      },
    );
    servers.push(server);
    toml += toolToml({ name: `s${index}`, url: server.url });
  }
  spine = await startSpine({ toml });
});
afterAll(async () => {
  await spine.stop();
  await Promise.all(servers.map((server) => server.close()));
});

const list = async (path: string, method: string, cursor?: string) => {
  const reply = await fetch(`${spine.origin}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { cursor } }),
  });
  const { result } = (await reply.json()) as { readonly result: Readonly<Record<string, never>> };
  return result as { readonly [member: string]: readonly { readonly name: string }[] } & {
    readonly nextCursor?: string;
  };
};

test.each(
  Object.keys(PAGES).flatMap((kind, index) => Object.keys(LISTS).map((method) => [kind, method, index] as const)),
)('each element comes once, and an end: %s, %s', async (kind, method, index) => {
  const [member] = LISTS[method as keyof typeof LISTS];
  // The gateway has read the lists itself by then.
  await expect
    .poll(async () => JSON.stringify(await list('/mcp', 'tools/list')), { timeout: 30_000 })
    .toContain(`s${index}__`);
  const names: string[] = [];
  let cursor: string | undefined;
  let pages = 0;
  do {
    const page = await list(`/mcp/s${index}`, method, cursor);
    names.push(...page[member]!.map(({ name }) => name));
    cursor = page.nextCursor;
  } while (cursor !== undefined && ++pages < 10);
  expect([names, cursor]).toEqual([RIGHT[kind] ?? ['a', 'b'], undefined]);
});

test('the empty cursor of a client is none', async () => {
  expect((await list('/mcp', 'tools/list', ''))['tools']).not.toEqual([]);
});
