import { afterAll, beforeAll } from 'vitest';
import { BEHIND_ROWS, behindToml, behindUsual } from './support/worst/behind-rows.ts';
import { startWorld, testRows, type World } from './support/worst/world.ts';

/* The worst JSON from what the gateway asks for itself, and from a provider that dials in. */

let world: World;
beforeAll(async () => {
  world = await startWorld(behindToml, behindUsual);
});
afterAll(async () => world?.stop());

testRows(BEHIND_ROWS, () => world);
