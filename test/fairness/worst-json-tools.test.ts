import { afterAll, beforeAll } from 'vitest';
import { setOrigin, TOOL_ROWS, toolToml, toolUsual } from './support/worst/tool-rows.ts';
import { startWorld, testRows, type World } from './support/worst/world.ts';

/* The worst JSON from MCP servers and A2A agents. */

let world: World;
beforeAll(async () => {
  world = await startWorld((upstream) => {
    setOrigin(upstream);
    return toolToml(upstream);
  }, toolUsual);
});
afterAll(async () => world?.stop());

testRows(TOOL_ROWS, () => world);
