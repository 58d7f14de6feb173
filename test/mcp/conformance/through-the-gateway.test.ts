import { afterAll, beforeAll, expect, test } from 'vitest';
import { startMcpFixture, type McpFixture } from '../../support/mcp-fixture.ts';
import { runConformance, type Revision } from '../../support/run-conformance.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { expectOnly, THROUGH_THE_GATEWAY, warningsOf, type Combination } from './expected-failures.ts';
import { toolBlock } from './tool-block.ts';

const ERAS = ['both', 'modern', 'legacy'] as const;
const REVISIONS: Readonly<Record<string, Revision>> = { modern: '2026-07-28', legacy: '2025-11-25' };

/** How many scenarios that count pass at least; where both sides speak one era, all of them. */
const FLOORS: Readonly<Record<Combination, number>> = {
  'modern, both': 37,
  'legacy, both': 30,
  'modern, legacy': 34,
  'legacy, modern': 26,
};

/**
 * By day where the gateway only passes on. Where it translates, the suite judges its bridges by day
 * (../modern-to-legacy, ../legacy-to-modern), and the whole gateway in the deep run.
 */
const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const COMBINATIONS = (Object.entries(FLOORS) as [Combination, number][]).filter(
  ([combination]) => DEEP || combination.endsWith(', both'),
);

let fixtures: McpFixture[];
let spine: Spine;
beforeAll(async () => {
  // A server of both eras has tools of old, which ask in a way that only a client of their era understands.
  fixtures = await Promise.all(ERAS.map((eras) => startMcpFixture({ eras, pushing: eras === 'both' })));
  spine = await startSpine({
    toml: UNHURRIED + ERAS.map((eras, index) => toolBlock(eras, fixtures[index]!.url)).join(''),
  });
});
afterAll(async () => {
  await spine.stop();
  await Promise.all(fixtures.map((fixture) => fixture.close()));
});

test.each(COMBINATIONS)(
  'the suite passes through the gateway, billed: %s',
  async (combination, floor) => {
    const [downstream = '', upstream = ''] = combination.split(', ');
    const before = (await spine.locks()).length;
    const result = await runConformance({
      url: `${spine.origin}/mcp/${upstream}`,
      key: spine.key,
      requirements: REVISIONS[downstream]!,
      mayFail: ({ name }) => Object.hasOwn(THROUGH_THE_GATEWAY[combination], name),
    });
    expectOnly(result, THROUGH_THE_GATEWAY[combination]);
    expect(result.scored.passed).toBeGreaterThanOrEqual(floor);
    // What the server does of its own will, the gateway does not lose either.
    if (upstream === 'both') expect(warningsOf(result)).toEqual([]);
    expect((await spine.locks()).length).toBeGreaterThan(before);
    // Calls that wait for an answer which the suite never gives hold their locks: there is no quiet to wait for.
    expect((await spine.audit()).checks.filter(({ ok }) => !ok)).toEqual([]);
  },
  600_000,
);

test('the fixtures never saw the key of the caller', () => {
  const seen = fixtures.flatMap((fixture) => fixture.headers.map((headers) => JSON.stringify([...headers])));
  expect(seen.length).toBeGreaterThan(0);
  expect(seen.filter((text) => text.includes(spine.key))).toEqual([]);
});
