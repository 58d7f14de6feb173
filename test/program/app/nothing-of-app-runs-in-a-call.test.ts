import { Session } from 'node:inspector/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startPeerProvider, type PeerProvider } from '../../peers/peer-provider.ts';
import { ENDPOINTS, type PeerDoor } from '../../peers/routes.ts';
import { peerServices } from '../../peers/services.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';

// The composition makes the parts of the gateway and connects them. What runs for a call belongs to one of the parts.

/**
 * What runs by a clock, and not for a call, does not run here, or is in these files: a head is written each second, and
 * the state of the process each half minute.
 */
const NO_CLOCKS = '[billing]\nsweep_ms = 3_599_999\n[analytics]\nevery_ms = 0\n';
const OF_CLOCKS = /\/(?:gateways|health|journal-file|known-identity)\.ts$/;

let provider: PeerProvider;
let spine: Spine;
beforeAll(async () => {
  provider = await startPeerProvider();
  spine = await startSpine({ toml: `${UNHURRIED}${NO_CLOCKS}${peerServices(provider)}` });
});
afterAll(async () => {
  await spine.stop();
  await provider.close();
});

async function answered(door: PeerDoor): Promise<void> {
  const { kind } = await door.call({ origin: spine.origin, key: spine.key, text: 'complete 1' });
  expect([door.name, kind]).toEqual([door.name, 'answered']);
  await spine.quiet();
}

test('a call through any route runs no function of the composition', async () => {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  const ran: string[] = [];
  const seen = new Set<string>();
  for (const door of ENDPOINTS) {
    // The first call of each route may open what later calls use.
    await answered(door);
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    await answered(door);
    const { result } = await session.post('Profiler.takePreciseCoverage');
    await session.post('Profiler.stopPreciseCoverage');
    for (const { url, functions } of result) {
      const path = /\/src\/(.*)/.exec(url)?.[1];
      if (path === undefined || !functions.some(({ ranges }) => ranges[0]!.count > 0)) continue;
      seen.add(path);
      if (!path.startsWith('program/app/') || OF_CLOCKS.test(path)) continue;
      for (const { functionName, ranges } of functions)
        if (ranges[0]!.count > 0) ran.push(`${door.name}: ${functionName} at ${ranges[0]!.startOffset} of ${path}`);
    }
  }
  session.disconnect();
  expect(ran).toEqual([]);
  expect(seen).toContain('gateway/call/execute.ts');
  expect(await spine.faults()).toEqual([]);
});
