import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { openFigures, TODAY, type FiguresWorld } from './figures-world.ts';

const CALLS = 1_203;
const NASTY = 'a,"b"\r\nc';

let world: FiguresWorld;
let alice: { readonly account: string; readonly key: string; readonly hash: string };
let limited: { readonly key: string; readonly hash: string };
beforeAll(async () => {
  world = await openFigures('sqlite');
  alice = await world.spine.tenant('alice', '100');
  limited = await world.spine.tenant('alice', '0', { limit: 1n });
  const { account } = alice;
  for (let made = 0; made < CALLS; made += 1)
    await world.calls(TODAY - 1, { account, id: `call-${String(made).padStart(5, '0')}`, charge: made });
  await world.calls(TODAY, { account, id: '=evil', service: NASTY, key: limited.hash, charge: 1_000_000 });
  await world.calls(TODAY, { account: 'tollgate:local:other', id: 'not-mine' });
});
afterAll(() => world.stop());

const file = (query = '', key = alice.key) =>
  world.spine.get(`/generations?format=csv${query}`, { authorization: `Bearer ${key}` });

/** Rows as a reader has them that knows RFC 4180 alone, and refuses what is not written as it says. */
function parsed(text: string): Record<string, string>[] {
  const FIELD = /("(?:[^"]|"")*"|[^",\r\n]*)(,|\r\n)/gy;
  const rows: string[][] = [[]];
  while (FIELD.lastIndex < text.length) {
    const at = FIELD.lastIndex;
    const [, field, end] = FIELD.exec(text) ?? [];
    if (field === undefined) throw new Error(`No CSV from byte ${at}: ${JSON.stringify(text.slice(at, at + 80))}`);
    rows.at(-1)!.push(field.startsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field);
    if (end !== ',') rows.push([]);
  }
  const [names, ...values] = rows.slice(0, -1);
  return values.map((row) => {
    expect(row).toHaveLength(names!.length);
    return Object.fromEntries(names!.map((name, index) => [name, row[index]!]));
  });
}

test('HEAD has the headers of the file, and reads no more than its first page', async () => {
  const query = vi.spyOn(world.spine.app.database, 'query');
  const pages = () => query.mock.calls.filter(([{ name }]) => name.endsWith('listLocks')).length;
  try {
    await (await file()).text();
    const ofFile = pages();
    expect(ofFile).toBeGreaterThan(2);
    const headers = { authorization: `Bearer ${alice.key}` };
    const reply = await fetch(`${world.spine.url}/generations?format=csv`, { method: 'HEAD', headers });
    expect([reply.status, reply.headers.get('content-disposition')]).toEqual([200, 'attachment; filename="calls.csv"']);
    // Time for whatever HEAD still reads.
    await (await file()).text();
    expect(pages()).toBe(2 * ofFile + 1);
  } finally {
    query.mockRestore();
  }
});

test('all calls of the account, the newest first, however many', async () => {
  const reply = await file();
  expect(reply.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present');
  expect(reply.headers.get('content-disposition')).toBe('attachment; filename="calls.csv"');
  const rows = parsed(await reply.text());
  expect(rows.map(({ id }) => id)).toEqual([
    "'=evil",
    ...Array.from({ length: CALLS }, (_, index) => `call-${String(CALLS - 1 - index).padStart(5, '0')}`),
  ]);
  expect(rows[0]).toEqual({
    id: "'=evil",
    created_at: '2026-11-21T00:00:01.000Z',
    resolved_at: '2026-11-21T00:00:01.000Z',
    state: 'settled',
    outcome: 'complete',
    primitive: 'model',
    model: NASTY,
    tool: '',
    provider: 'p1',
    provider_name: 'P',
    key: limited.hash,
    key_name: 'alice',
    prompt_tokens: '10',
    completion_tokens: '5',
    cost_usd: '1.000000',
    cost_micro_usdc: '1000000',
    latency_ms: '200',
    duration_ms: '1000',
    finish_reason: '',
    error: '',
    parent: '',
    tags: '',
    refunded_micro_usdc: '0',
  });
});

test('those that the filters match, and of a limited key its own', async () => {
  expect(parsed(await (await file('&from=2026-11-21')).text())).toHaveLength(1);
  expect(parsed(await (await file('&state=released')).text())).toEqual([]);
  expect(parsed(await (await file('', limited.key)).text())).toHaveLength(1);
});

test('a part of them is refused, and so is a wrong filter, before the file begins', async () => {
  for (const [query, param] of [
    ['&limit=5', 'limit'],
    ['&cursor=abc', 'cursor'],
    ['&from=yesterday', 'from'],
  ]) {
    const reply = await file(query);
    expect({ query, status: reply.status }).toEqual({ query, status: 400 });
    expect(await reply.json()).toMatchObject({ error: { type: 'invalid_request', param } });
  }
  expect(await world.spine.faults()).toEqual([]);
});

test('a reader that leaves ends the file, and others go on', async () => {
  const leaving = new AbortController();
  const reply = await fetch(`${world.spine.url}/generations?format=csv`, {
    headers: { authorization: `Bearer ${alice.key}` },
    signal: leaving.signal,
  });
  await reply.body!.getReader().read();
  leaving.abort();
  expect(parsed(await (await file('&from=2026-11-21')).text())).toHaveLength(1);
});
