import { afterAll, beforeAll } from 'vitest';
import { dialIn, type DialledIn } from '../support/dial-in.ts';
import { setOrigin, TUNNEL_ROWS, toolUsual, tunnelServices, tunnelToml } from './support/worst/tool-rows.ts';
import { startWorld, testRows, type World } from './support/worst/world.ts';

/* The worst JSON from MCP servers and A2A agents behind the proxy of a provider that dialled in. */

let world: World;
let proxy: DialledIn;
beforeAll(async () => {
  world = await startWorld(() => tunnelToml, toolUsual);
  setOrigin(world.upstream);
  proxy = await dialIn({ router: world.gateway.baseUrl, services: tunnelServices(world.upstream) });
});
afterAll(async () => {
  proxy?.kill();
  await world?.stop();
});

testRows(TUNNEL_ROWS, () => world);
