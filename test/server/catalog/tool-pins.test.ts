import { afterEach, describe, expect, test } from 'vitest';
import type { Database, Step } from '#store';
import { createToolPins } from '../../../src/server/catalog/tool-definitions.ts';
import { adHoc } from '../../support/ad-hoc.ts';
import { ENGINES, openEngine, type EngineName } from '../../support/engines.ts';
import { clock } from '../../gateway/call/routing/offers.ts';

const disposals: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const dispose of disposals.splice(0)) await dispose();
});

/** Pins on a database, and how many steps were written. */
async function startPins(
  engine: EngineName,
  options: { readonly serviceMax?: number; readonly providerMax?: number } = {},
) {
  const { database, dispose } = await openEngine(engine);
  disposals.push(dispose);
  const now = clock();
  const written: Step[] = [];
  const counting: Pick<Database, 'query' | 'batch'> = {
    query: database.query,
    batch(steps) {
      written.push(...steps);
      return database.batch(steps);
    },
  };
  const rows = async () => Number((await database.query(adHoc('SELECT COUNT(*) AS pins FROM tool_pins')))[0]!['pins']);
  return { pins: createToolPins(counting, { now, ...options }), database, now, written, rows };
}

const sha = (text: string) => text.padEnd(64, '0');
const of = (definitions: Readonly<Record<string, string>>) =>
  new Map(Object.entries(definitions).map(([tool, text]) => [tool, sha(text)]));

describe.each(ENGINES)('%s', (engine) => {
  test('a definition that changes is the next version, and one that does not is not written', async () => {
    const { pins, now, written } = await startPins(engine);
    const first = now();
    const seen = { firstSeen: first, version: 1, changedAt: null };
    expect(await pins.note('p', 's', of({ a: '1', b: '1' }))).toEqual(
      new Map([
        ['a', { ...seen, sha256: sha('1') }],
        ['b', { ...seen, sha256: sha('1') }],
      ]),
    );
    expect(written).toHaveLength(2);

    now.advance(1_000);
    await pins.note('p', 's', of({ a: '1', b: '1' }));
    expect(written).toHaveLength(2);

    const changed = await pins.note('p', 's', of({ a: '2', b: '1' }));
    expect(changed.get('a')).toEqual({ sha256: sha('2'), version: 2, firstSeen: first, changedAt: first + 1_000 });
    expect(changed.get('b')).toMatchObject({ version: 1 });
    expect(written).toHaveLength(3);
    expect(await pins.note('p', 's', of({ a: '2', b: '1' }))).toEqual(changed);

    // Another service's tool, and another provider's, is another tool.
    expect((await pins.note('p', 's2', of({ a: '3' }))).get('a')).toMatchObject({ version: 1 });
    expect((await pins.note('p2', 's', of({ a: '3' }))).get('a')).toMatchObject({ version: 1 });
  });

  test('a tool that was gone and comes back otherwise has changed', async () => {
    const { pins } = await startPins(engine);
    await pins.note('p', 's', of({ a: '1' }));
    expect(await pins.note('p', 's', of({}))).toEqual(new Map());
    expect((await pins.note('p', 's', of({ a: '2' }))).get('a')).toMatchObject({ version: 2 });
  });

  test('gateways that see one change at once count it once', async () => {
    const { database, now } = await startPins(engine);
    const gateways = Array.from({ length: 4 }, () => createToolPins(database, { now }));
    const noteAll = (text: string) =>
      Promise.all(gateways.map((pins) => pins.note('p', 's', of({ a: text, b: text }))));
    for (const [index, text] of ['1', '2', '3'].entries())
      for (const found of await noteAll(text))
        expect([...found.values()].map(({ version }) => version)).toEqual([index + 1, index + 1]);
  });

  test('names that no column holds are pinned like others, each for itself', async () => {
    const { pins } = await startPins(engine);
    const names = [
      'a\u0000b',
      'a\u0000c',
      '\ud800',
      '\ufffd',
      'x'.repeat(1_024),
      `${'x'.repeat(1_023)}y`,
      '💥',
      'A',
      'a',
      ' a',
      `'; DROP TABLE tool_pins`,
    ];
    const definitions = new Map(names.map((name, i) => [name, sha(String(i))]));
    const noted = await pins.note('p', 's', definitions);
    expect([...noted].map(([name, { sha256 }]) => [name, sha256])).toEqual([...definitions]);
    expect(await pins.note('p', 's', definitions)).toEqual(noted);
  });

  test('a provider whose tools have other names each time fills nothing: the oldest that are gone are forgotten, and what is above its cap is not pinned', async () => {
    const { pins, rows, now } = await startPins(engine, { serviceMax: 30, providerMax: 45 });
    const round = (n: number) => of(Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`t${n}-${i}`, 'x'])));
    for (let n = 0; n < 5; n++) {
      now.advance(1);
      expect((await pins.note('p', 's', round(n))).size).toBe(20);
      expect(await rows()).toBeLessThanOrEqual(30);
    }
    // Ten of the round before are still known.
    expect(await rows()).toBe(30);
    expect((await pins.note('p', 's2', round(0))).size).toBe(15);
    expect(await rows()).toBe(45);
    expect((await pins.note('p2', 's', round(0))).size).toBe(20);
    expect((await pins.note('p', 's2', of({ 't0-0': 'y' }))).get('t0-0')).toMatchObject({ version: 2 });
  });

  test('2,000 tools that all change each time are 2,000 rows', async () => {
    const { pins, rows } = await startPins(engine);
    for (const text of ['1', '2', '3']) {
      const noted = await pins.note(
        'p',
        's',
        of(Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`t${i}`, text]))),
      );
      expect(noted.get('t1999')).toMatchObject({ version: Number(text) });
    }
    expect(await rows()).toBe(2_000);
  });
});
