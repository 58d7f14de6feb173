import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { COMPILED_ONCE } from '../support/compiled-once.ts';
import { watchedAt } from '../support/loop-stalls.ts';
import { startProvide, type ProvideProcess } from '../support/provide-process.ts';
import { setOrigin, STDIO_ROWS, stdioServices, toolUsual, tunnelToml } from './support/worst/tool-rows.ts';
import { startWorld, testRows, type World } from './support/worst/world.ts';

/*
 * The worst JSON from MCP servers that the proxy of a provider runs and speaks with over stdio. Neither the gateway nor
 * the proxy has a long turn.
 */

const BRIDGE = join(import.meta.dirname, '../support/http-over-stdio.ts');
const directory = mkdtempSync(join(tmpdir(), 'tollgate-worst-stdio-'));
const others = [join(directory, 'loop.sock')];
let world: World;
let proxy: ProvideProcess;
beforeAll(async () => {
  world = await startWorld(() => tunnelToml, toolUsual);
  setOrigin(world.upstream);
  proxy = await startProvide({
    router: world.gateway.baseUrl,
    services: stdioServices(world.upstream, [process.execPath, COMPILED_ONCE, BRIDGE]),
    env: watchedAt(others[0]!),
  });
});
afterAll(async () => {
  await proxy?.stop();
  await world?.stop();
  rmSync(directory, { recursive: true });
});

testRows(STDIO_ROWS, () => ({ ...world, others }));
