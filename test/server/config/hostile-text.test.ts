import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { ConfigError } from '../../../src/server/config/problem.ts';
import { damaged, soup, TOML_PIECES } from './damage.ts';
import { load, modelBlock } from './load.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const example = readFileSync(new URL('../../../examples/tollgate.toml', import.meta.url), 'utf8');

/** Loads or refuses with a ConfigError; anything else is a crash. */
function loadsOrRefuses(text: string): void {
  try {
    load(text, { env: { OPENAI_API_KEY: 'a', ACME_API_KEY: 'b' } });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    expect(error.problems.length).toBeGreaterThan(0);
  }
}

test('any text, and any damage to a right file, loads or is refused', () => {
  const texts = fc.oneof(damaged([example, modelBlock()], TOML_PIECES), soup(TOML_PIECES));
  fc.assert(fc.property(texts, loadsOrRefuses), { numRuns: DEEP ? 1_000_000 : 400 });
}, 3_600_000);

test.each([
  ['spaces', ' '.repeat(1_000_000)],
  ['brackets', '['.repeat(1_000_000)],
  ['a key', 'k'.repeat(1_000_000)],
  ['a dotted key', 'k.'.repeat(300_000)],
  ['quotes', `x = ${'"'.repeat(1_000_000)}`],
  ['many headers', '[[models]]\n'.repeat(100_000)],
  ['many keys', Array.from({ length: 50_000 }, (_, index) => `key${index} = 1\n`).join('')],
  ['deep arrays', `x = ${'['.repeat(100_000)}`],
])('a megabyte of %s is refused in linear time', (_what, text) => {
  const before = process.cpuUsage();
  loadsOrRefuses(text);
  const { user, system } = process.cpuUsage(before);
  // A quarter of a second on an idle machine; what is quadratic in a million takes minutes.
  expect((user + system) / 1000).toBeLessThan(5_000);
});
