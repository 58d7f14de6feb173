import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startRealServers, type RealServers } from './real-servers.ts';

const run = promisify(execFile);

let world: RealServers;
let home: string;
beforeAll(async () => {
  world = await startRealServers();
  home = await mkdtemp(join(tmpdir(), 'tollgate-inspector-'));
});
afterAll(async () => {
  await world.close();
  await rm(home, { recursive: true, force: true });
});

/** Runs the inspector's command line against a path of the gateway; what it prints, parsed. */
async function inspect(path: string, ...args: readonly string[]): Promise<unknown> {
  const bin = join(
    dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/inspector/package.json')),
    'clients/launcher/build/index.js',
  );
  const command = [
    bin,
    '--cli',
    `${world.spine.origin}${path}`,
    '--transport',
    'http',
    '--header',
    `Authorization: Bearer ${world.spine.key}`,
    ...args,
  ];
  const { stdout } = await run(process.execPath, command, {
    env: { PATH: process.env['PATH'], HOME: home },
    timeout: 60_000,
  });
  return JSON.parse(stdout) as unknown;
}

test('the inspector lists tools with their prices and calls one, and the call is charged', async () => {
  const price = { 'tollgate/price': expect.objectContaining({ per_call: '0.001' }) as unknown };
  expect(await inspect('/mcp/real/everything', '--method', 'tools/list')).toMatchObject({
    tools: expect.arrayContaining([
      expect.objectContaining({ name: 'echo', _meta: expect.objectContaining(price) as unknown }),
    ]) as unknown,
  });
  const before = (await world.spine.balance()).available;
  const result = await inspect(
    '/mcp/real/everything',
    '--method',
    'tools/call',
    '--tool-name',
    'echo',
    '--tool-arg',
    'message=hi',
  );
  expect(result).toMatchObject({ content: [{ type: 'text', text: 'Echo: hi' }] });
  expect((await world.spine.balance()).available).toBe(before - 1_000n);
  expect(await world.spine.faults()).toEqual([]);
});
