import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { METERS } from '#billing/amounts';
import {
  readRegistration,
  RegistrationError,
  toRegistrationDocument,
} from '../../../../src/gateway/network/registry/document.ts';
import { loadProviderText } from '../../../providers/proxy/load.ts';
import { damaged, JSON_PIECES, soup } from '../../../server/config/damage.ts';
import { block } from '../../../server/config/load.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const documents = [
  block('models', { 'pricing.image': '0' }) + block('agents'),
  block('models', {
    'pricing.input_cache_write_1h': '4',
    'pricing.tiers': '[{ above = 9, prompt = 3 }]',
    'pricing.service_tiers': '{ flex = { prompt = 1, tiers = [{ above = 9, completion = 2 }] } }',
  }),
  block('tools', { 'pricing.tools.a': '1' }),
  block('images', { 'pricing.resolutions.1K': '1', formats: '["png"]' }),
  block('videos', { 'pricing.base': '1', 'pricing.audio_multiplier': '1.5' }),
].map((text) => toRegistrationDocument(loadProviderText(text).services));

/** Not every value has a text: an object may have no prototype. */
const textOf = (value: unknown) => (typeof value === 'object' ? JSON.stringify(value) : String(value));

/** Reads or refuses; anything else is a crash. What is read is sound, and says the same when it is said again. */
async function readsOrRefuses(text: string): Promise<boolean> {
  try {
    const services = await readRegistration(text, { servicesMax: 10 });
    expect(services.length).toBeGreaterThan(0);
    for (const { rates, variants } of services)
      for (const of of [rates, ...Object.values(variants)])
        for (const { rates: at } of [{ rates: of }, ...(of.tiers ?? [])])
          for (const meter of METERS) expect((at[meter] ?? 0n) >= 0n && (at[meter] ?? 0n) <= 10n ** 15n).toBe(true);
    const said = toRegistrationDocument(
      services.map((service) => ({ service, target: { kind: 'http', url: '', apiKey: null } })),
    );
    expect(await readRegistration(JSON.stringify(said), { servicesMax: 10 })).toEqual(services);
    return true;
  } catch (error) {
    if (!(error instanceof RegistrationError)) throw error;
    expect(error.problems.length).toBeGreaterThan(0);
    expect(error.problems.length).toBeLessThanOrEqual(1_000);
    return false;
  }
}

async function check(texts: fc.Arbitrary<string>): Promise<void> {
  let read = 0;
  let refused = 0;
  const property = fc.asyncProperty(texts, async (text) => {
    if (await readsOrRefuses(text)) read++;
    else refused++;
  });
  await fc.assert(property, { numRuns: DEEP ? 500_000 : 2_000 });
  expect(read).toBeGreaterThan(100);
  expect(refused).toBeGreaterThan(100);
}

test('any text, and any damage to a right document, is read or refused', async () => {
  const texts = documents.map((document) => JSON.stringify(document));
  await check(
    fc.oneof({ weight: 4, arbitrary: damaged(texts, JSON_PIECES) }, { weight: 1, arbitrary: soup(JSON_PIECES) }),
  );
}, 3_600_000);

test('any value in the place of any other is read or refused', async () => {
  const hostile = fc.oneof(
    fc.constantFrom<unknown>(
      null,
      true,
      -1,
      0,
      '0',
      1e30,
      1e-30,
      '1e5',
      '',
      '../x',
      '__proto__',
      '\ud800',
      '<script>',
      [],
      {},
      // Has no text: String() of it throws.
      { toString: 1, valueOf: 1 },
      ['text'],
      [null],
      'x'.repeat(5_000),
    ),
    fc.double(),
    fc.double().map(String),
    fc.jsonValue({ maxDepth: 3 }),
  );
  const edits = fc.array(fc.tuple(fc.nat(), fc.constantFrom('replace', 'remove', 'rename'), hostile), {
    minLength: 0,
    maxLength: 3,
  });
  const texts = fc.tuple(fc.constantFrom(...documents), edits).map(([document, changes]) => {
    const copy = structuredClone(document);
    for (const [at, how, value] of changes) {
      const places = placesIn(copy);
      if (places.length === 0) break;
      const [holder, key] = places[at % places.length]!;
      const old = holder[key];
      if (how !== 'replace') delete holder[key];
      if (how !== 'remove')
        Object.defineProperty(holder, how === 'rename' ? textOf(value).slice(0, 50) : key, {
          // A copy: the next change may be made inside of it, or put the same value into it.
          value: how === 'rename' ? old : structuredClone(value),
          enumerable: true,
          configurable: true,
          writable: true,
        });
    }
    return JSON.stringify(copy);
  });
  await check(texts);
}, 3_600_000);

/** Every place in a JSON value that holds another. */
function placesIn(value: unknown): [holder: Record<string, unknown>, key: string][] {
  if (typeof value !== 'object' || value === null) return [];
  const holder = value as Record<string, unknown>;
  return Object.keys(holder).flatMap((key) => [
    [holder, key] as [Record<string, unknown>, string],
    ...placesIn(holder[key]),
  ]);
}
