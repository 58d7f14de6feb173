import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makePlace, type Place } from './tollgate.ts';

// A command that loads a gateway takes a second of a processor where it could take a third. Counted in modules, as
// time depends on the machine.

let place: Place;
beforeAll(async () => {
  place = await makePlace();
});
afterAll(() => place.clear());

/** Packages and folders of src/ whose modules the command loaded. */
async function loads(...args: string[]): Promise<readonly string[]> {
  const file = join(place.dir, 'loads');
  const options = { NODE_OPTIONS: `--import=${new URL('note-loads.mjs', import.meta.url).href}`, LOADS: file };
  expect(await place.run(args, options), args.join(' ')).toMatchObject({ code: 0 });
  const urls = (await readFile(file, 'utf8')).split('\n').filter((url) => url.startsWith('file:'));
  const owners = urls.map(
    (url) =>
      /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ??
      /\/src\/(?:app\/app\.ts|[^/]+)/.exec(url)?.[0].slice(1) ??
      'other',
  );
  return [...new Set(owners)];
}

const OF_A_GATEWAY = ['undici', 'pino', 'prom-client', 'ws', 'viem', '@solana/kit', '@fastify/swagger', 'jose'];
const ROOMS_OF_A_GATEWAY = ['src/app/app.ts', 'src/openai', 'src/mcp', 'src/a2a', 'src/rpc'];
const unwanted = (loaded: readonly string[]) =>
  [...OF_A_GATEWAY, ...ROOMS_OF_A_GATEWAY].filter((one) => loaded.includes(one));

it('help loads no gateway, no billing and no configuration', async () => {
  for (const args of [['--help'], ['help', 'account'], ['key', 'create', '--help']]) {
    const loaded = await loads(...args);
    expect(unwanted(loaded)).toEqual([]);
    expect(loaded).not.toContain('src/billing');
    expect(loaded).not.toContain('smol-toml');
  }
});

it('the settings of clients are printed without a gateway and its billing', async () => {
  const loaded = await loads('connect', '--list');
  expect(unwanted(loaded)).toEqual([]);
  for (const one of ['fastify', 'ajv', 'src/billing', 'src/gateway']) expect(loaded).not.toContain(one);
});

it('accounts, keys and the audit are done on the database without a gateway', async () => {
  const commands = [
    ['account', 'create', 'acme'],
    ['account', 'credit', 'acme', '5'],
    ['account', 'list'],
    ['key', 'create', 'acme'],
    ['key', 'list', 'acme'],
    ['audit'],
  ];
  for (const command of commands) expect(unwanted(await loads(...command)), command.join(' ')).toEqual([]);
});
