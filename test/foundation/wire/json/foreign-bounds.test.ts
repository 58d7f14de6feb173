import { expect, test } from 'vitest';
import { BOUNDS, type Bound, parseForeign } from '#wire';
import { within } from '../../../fairness/support/worst/shapes.ts';
import { listInTurns } from '../../../../src/mcp/shapes/lists.ts';
import { resultParts } from '../../../../src/mcp/call/content-parts.ts';

/* What test/fairness/worst-json*.test.ts measures, without a clock: what is refused, and what is read in turns. */

/** Those that are built at once, which take milliseconds here. */
const SMALL = Object.entries<Bound>(BOUNDS).filter(([, { jsonKeysMax }]) => jsonKeysMax <= 20_000);

test.each(SMALL)('%s: what is beyond the bound is refused, and what is within is read', (_name, bound) => {
  const { jsonDepthMax, jsonKeysMax, jsonElementsMax } = bound;
  const beyond = [
    '['.repeat(jsonDepthMax + 1) + ' '.repeat(5_000),
    `[${'{},'.repeat(jsonKeysMax + 5_000)}0]`,
    `{${'"a":1,'.repeat(jsonKeysMax + 5_000)}"a":1}`,
    `[${'1,'.repeat(jsonElementsMax + 5_000)}1]`,
    `[${`${'7'.repeat(60)},`.repeat(2_000)}1]`,
  ];
  for (const text of beyond) expect(() => parseForeign(text, bound)).toThrow(/more than|deeper than/);
  for (const make of Object.values(within({ ...bound, bytesMax: Math.min(bound.bytesMax ?? Infinity, 500_000) })))
    expect(() => parseForeign(make(), bound)).not.toThrow();
});

test.each(Object.entries<Bound>(BOUNDS).filter(([, { denseBytesMax }]) => denseBytesMax !== undefined))(
  '%s: long strings may be plain ASCII alone',
  (_name, bound) => {
    const most = bound.denseBytesMax!;
    const text = (junk: string, plain = 'a') =>
      `{"picture":"${plain.repeat(1_000_000)}","junk":${junk},"sound":"${plain.repeat(1_000_000)}"}`;
    expect(() => parseForeign(text(`[${' '.repeat(most - 1_000)}]`), bound)).not.toThrow();
    for (const beyond of [
      `[${' '.repeat(most)}]`,
      `"${'a'.repeat(most)}é"`,
      `"${String.raw`\u0061`}${'a'.repeat(most)}"`,
    ])
      expect(() => parseForeign(text(beyond), bound)).toThrow('bytes beside long strings of plain ASCII');
    expect(() => parseForeign(text('0', 'é'), bound)).toThrow('bytes beside long strings of plain ASCII');
  },
);

test('a long list of a server is read in turns of the event loop', () => {
  const tools = Array.from({ length: 9_000 }, (_, i) => `{"uri":"x://${i}","name":"y"}`).join();
  const work = listInTurns('resources/list', 'legacy', `{"resources":[${tools}]}`);
  let turns = 1;
  while (!work.next().done) turns++;
  expect(turns).toBeGreaterThan(9);
});

test('a long text of a result is not parsed to see whether it is the structured content', () => {
  const data = { list: Array<string>(30_000).fill('a long text') };
  const parts = (structuredContent: object) =>
    resultParts({ content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent });
  expect(parts({ a: 1 }).map(({ kind }) => kind)).toEqual(['text']);
  expect(parts(data).map(({ kind }) => kind)).toEqual(['text', 'data']);
});
