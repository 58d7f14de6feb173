import { afterAll, beforeAll, expect, test } from 'vitest';
import { startMcpFixture, type McpFixture } from '../../support/mcp-fixture.ts';
import { runConformance } from '../../support/run-conformance.ts';
import { expectOnly, FIXTURE_ITSELF, warningsOf } from './expected-failures.ts';

let fixture: McpFixture;
beforeAll(async () => {
  fixture = await startMcpFixture();
});
afterAll(() => fixture.close());

test('the fixture passes all that 2026-07-28 requires', async () => {
  const result = await runConformance({
    url: fixture.url,
    requirements: '2026-07-28',
    mayFail: ({ name }) => Object.hasOwn(FIXTURE_ITSELF.modern, name),
  });
  expectOnly(result, FIXTURE_ITSELF.modern);
  expect(result.scored).toEqual({ passed: 37, of: 37 });
  expect(warningsOf(result)).toEqual([]);
});

test('the fixture passes all that 2025-11-25 requires', async () => {
  const result = await runConformance({ url: fixture.url, requirements: '2025-11-25' });
  expectOnly(result, FIXTURE_ITSELF.legacy);
  expect(result.scored).toEqual({ passed: 30, of: 30 });
  expect(warningsOf(result)).toEqual([]);
});
