import { expect, onTestFinished, test } from 'vitest';
import { startMcpFixture } from '../../support/mcp-fixture.ts';
import { runConformance } from '../../support/run-conformance.ts';
import { startBridge } from './bridge.ts';

/** What no bridge can do. */
const IMPOSSIBLE: readonly string[] = [
  // A legacy server that lacks a capability of the client fails by words of its own, not with the error of the
  // modern revision.
  'server-stateless',
  // A legacy server gives its questions no names, and the scenario wants the one that its tool would have given.
  'input-required-result-basic-elicitation',
];

test('a modern client finds what its revision requires in front of a server that is legacy only', async () => {
  const fixture = await startMcpFixture({ eras: 'legacy' });
  onTestFinished(() => fixture.close());
  const bridge = await startBridge(fixture.url);
  const { failed, scored } = await runConformance({
    url: bridge.url,
    requirements: '2026-07-28',
    mayFail: ({ name, scored: counts }) => !counts || IMPOSSIBLE.includes(name),
  });
  expect(failed.filter((scenario) => scenario.scored).map(({ name }) => name)).toEqual(IMPOSSIBLE);
  expect(scored).toEqual({ passed: 35, of: 37 });
  expect(bridge.held.size).toBeGreaterThan(0);
  bridge.held.close();
  await bridge.sessions.close();
  expect(fixture.sessions).toBe(0);
  expect(await bridge.faults()).toEqual([]);
});
