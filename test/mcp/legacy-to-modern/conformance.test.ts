import { expect, onTestFinished, test } from 'vitest';
import { startMcpFixture } from '../../support/mcp-fixture.ts';
import { runConformance } from '../../support/run-conformance.ts';
import { startBridge } from './bridge-world.ts';
import { startLegacyServer } from './legacy-server.ts';

test('all that 2025-11-25 requires of a server passes in front of one that speaks 2026-07-28 alone', async () => {
  const fixture = await startMcpFixture({ eras: 'modern' });
  onTestFinished(() => fixture.close());
  const world = await startBridge(fixture.url);
  const front = await startLegacyServer(world);
  const result = await runConformance({
    url: front.url,
    requirements: '2025-11-25',
    mayFail: ({ scored }) => !scored,
  });
  expect(result.failed.filter(({ scored }) => scored).map(({ name, checks }) => [name, checks])).toEqual([]);
  expect(result.scored).toEqual({ passed: 30, of: 30 });
  expect(world.endings.length).toBeGreaterThan(10);
  expect(world.clientRequests.count).toBe(0);
  expect(world.bridge.running).toBe(0);
  expect(await world.faults()).toEqual([]);
});
