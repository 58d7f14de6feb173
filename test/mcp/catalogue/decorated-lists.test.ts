import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseRates } from '#billing/amounts';
import type { Offer } from '#catalog';
import { createDecorate } from '../../../src/mcp/catalogue/decorate.ts';
import { toolOffer } from './catalogue-world.ts';
import { variants } from '../../console/pages/market/market-world.ts';
import { anyCharacter } from '../../support/any-character.ts';

const offer = toolOffer('http://127.0.0.1:9/mcp', { call: 0.001 });
const decorate = createDecorate({ catalogue: { listingOf: () => null, stale: () => {} }, now: () => 0 });

interface Decorated {
  readonly tools: readonly { readonly name?: string; readonly _meta?: Readonly<Record<string, unknown>> }[];
}
const decorated = (text: string, of: Offer = offer, all?: readonly Offer[]) =>
  JSON.parse(decorate(text, of, all)) as Decorated;
const pricesOf = ({ tools }: Decorated) => tools.map(({ _meta }) => _meta?.['tollgate/price']);

const SPLICED = /,?"tollgate\/(?:price|definition)":\{[^{}]*\}/g;

test('everything but the spliced members comes back byte for byte', () => {
  const key = fc.stringMatching(/^[a-z_$\\"é/]{1,6}$/).filter((text) => !['name', '_meta', '__proto__'].includes(text));
  const value = fc.jsonValue({ maxDepth: 3 });
  const meta = fc.dictionary(key, value, { minKeys: 1 });
  const tool = fc.record({
    name: fc.string({ unit: anyCharacter }),
    rest: fc.dictionary(key, value),
    meta: fc.option(meta),
    space: fc.constantFrom('', '  ', '\t'),
  });
  fc.assert(
    fc.property(fc.array(tool), fc.dictionary(key, value), (tools, rest) => {
      const written = tools.map(({ name, rest: members, meta: of, space }) =>
        JSON.stringify(of === null ? { ...members, name } : { _meta: of, ...members, name }, null, space),
      );
      const before = `{ "x" : ${JSON.stringify(rest)} ,"tools":[ ${written.join(' ,\n')} ], "nextCursor" : "a\\u0062" }`;
      const after = decorate(before, offer);
      expect(pricesOf(JSON.parse(after) as Decorated)).toEqual(
        tools.map(() => ({ per_call: '0.001', currency: 'USDC' })),
      );
      // Where there was a `_meta`, taking out what came in leaves what was there; where there was none, it goes
      // with them.
      expect(after.replaceAll(SPLICED, '').replaceAll(/,"_meta":\{\}/g, '')).toBe(before);
    }),
    { numRuns: 300 },
  );
});

test('prices are exact texts: of the tool itself, by use, and the most that a provider asks', () => {
  const list = '{"tools":[{"name":"plain"},{"name":"deep"},{"name":"ping"},{"name":"constructor"}]}';
  const own = { ...offer, variants: variants(offer, 'call', { deep: 0.05, ping: 0 }) };
  const plain = { per_call: '0.001', currency: 'USDC' };
  expect(pricesOf(decorated(list, own))).toEqual([
    plain,
    { ...plain, per_call: '0.05' },
    { ...plain, per_call: '0' },
    plain,
  ]);

  const byUse: Offer = {
    ...own,
    price: { id: 'by-use', rates: parseRates({ call: 0.000001, second: 0.0001, prompt: 0.15, completion: 0.6 }) },
    priceCap: 250_000n,
  };
  const use = {
    per_call: '0.000001',
    per_second: '0.0001',
    prompt: '0.15',
    completion: '0.6',
    per_call_max: '0.25',
    currency: 'USDC',
  };
  expect(pricesOf(decorated(list, byUse))).toEqual([
    use,
    { ...plain, per_call: '0.05' },
    { ...plain, per_call: '0' },
    use,
  ]);

  const dear = toolOffer('http://127.0.0.1:9/mcp', { provider: 'B', call: 0.02 });
  expect(pricesOf(decorated(list, own, [own, dear]))).toEqual([
    { ...plain, per_call_max: '0.02' },
    { ...plain, per_call: '0.05' },
    { ...plain, per_call: '0', per_call_max: '0.02' },
    { ...plain, per_call_max: '0.02' },
  ]);
});

test.each([
  ['a price of its own', '{"name":"t","_meta":{"tollgate/price":{"per_call":"0"},"a":1}}', { a: 1 }],
  ['an escaped one', '{"name":"t","_meta":{"tollgate\\/price":{"per_call":"0"}}}', {}],
  ['two of them', '{"name":"t","_meta":{"tollgate/price":1,"tollgate/price":2}}', {}],
  ['a _meta that is null', '{"name":"t","_meta":null}', {}],
  ['a _meta that is a list', '{"name":"t","_meta":[1]}', {}],
  ['two _meta', '{"name":"t","_meta":{"a":0},"_meta":{"a":1}}', { a: 1 }],
  ['two names', '{"name":"free","name":"t"}', {}],
])('a tool with %s says the real price, once', (_, written, rest) => {
  const text = decorate(`{"tools":[${written}]}`, offer);
  const [tool] = (JSON.parse(text) as Decorated).tools;
  expect(tool!.name).toBe('t');
  expect(tool!._meta).toEqual({
    ...rest,
    'tollgate/price': { per_call: '0.001', currency: 'USDC' },
    'tollgate/definition': { sha256: expect.any(String) },
  });
  expect(text.match(/tollgate.{1,2}price/g)).toHaveLength(1);
});

test.each([
  '{}',
  '{"tools":7}',
  '{"tools":[]}',
  '{"tools":[null,7,"x",[],{},{"name":7}]}',
  '7',
  '{"tools":[],"tools":[]}',
  '{"tools":[{"name":tru}]}',
])('%s, in which no tool can be read, comes back as it is', (text) => expect(decorate(text, offer)).toBe(text));
