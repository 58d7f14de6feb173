import { readFile, writeFile } from 'node:fs/promises';
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

const NOTED = { NODE_OPTIONS: `--import=${new URL('note-loads.mjs', import.meta.url).href}` };
const noted = () => ({ ...NOTED, LOADS: join(place.dir, 'loads') });

/** Addresses of the files that the last command loaded. */
async function files(): Promise<readonly string[]> {
  const urls = (await readFile(join(place.dir, 'loads'), 'utf8')).split('\n');
  return urls.filter((url) => url.startsWith('file:') && !url.endsWith('.json'));
}

/** Packages and folders of src/ whose modules the command loaded. */
async function loads(...args: string[]): Promise<readonly string[]> {
  expect(await place.run(args, noted()), args.join(' ')).toMatchObject({ code: 0 });
  const owners = (await files()).map(
    (url) =>
      /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ??
      /\/src\/(?:app\/app\.ts|[^/]+)/.exec(url)?.[0].slice(1) ??
      'other',
  );
  return [...new Set(owners)];
}

/** How many files of ours, and how many of packages, the last command loaded. */
async function counts() {
  const loaded = await files();
  const own = loaded.filter((url) => !url.includes('/node_modules/')).length;
  return { own, packages: loaded.length - own };
}

const OF_A_GATEWAY = ['undici', 'pino', 'prom-client', 'ws', 'viem', '@solana/kit', '@fastify/swagger', 'jose'];
const MODULES_OF_A_GATEWAY = ['src/program/app/app.ts', 'src/openai', 'src/mcp', 'src/a2a', 'src/console/rpc'];
const unwanted = (loaded: readonly string[]) =>
  [...OF_A_GATEWAY, ...MODULES_OF_A_GATEWAY].filter((one) => loaded.includes(one));

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
  for (const one of ['fastify', 'ajv', 'src/billing', 'src/gateway/call']) expect(loaded).not.toContain(one);
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

// The most that each may load. A start waits for all that it loads: load what only some gateways need where they need
// it. Lower a count that has fallen.
const MOST = {
  '--version': { own: 45, packages: 9 },
  provide: { own: 162, packages: 55 },
  serve: { own: 989, packages: 251 },
};

const within = async (command: keyof typeof MOST) => {
  const loaded = await counts();
  expect(loaded.own, `own files of ${command}`).toBeLessThanOrEqual(MOST[command].own);
  expect(loaded.packages, `packages' files of ${command}`).toBeLessThanOrEqual(MOST[command].packages);
};

it('a start loads no more files than it needs', async () => {
  expect(await place.runAlone(['--version'], noted())).toMatchObject({ code: 0 });
  await within('--version');

  const file = join(place.dir, 'tollgate.toml');
  await writeFile(file, '');
  const gateway = await place.gateway(['serve', '--config', file], noted());
  gateway.signal('SIGTERM');
  await gateway.exited;
  await within('serve');
  const loaded = (await files()).join('\n');
  for (const unused of [
    'pg',
    'ioredis',
    'viem',
    'jose',
    '@solana/kit',
    '@opentelemetry/api',
    'ajv',
    '@fastify/swagger',
    '@pydantic/genai-prices',
  ])
    expect(loaded, unused).not.toContain(`/node_modules/${unused}/`);
});

it("a provider's proxy loads no database, no chains, no routes and no server", async () => {
  const file = join(place.dir, 'provider.toml');
  await writeFile(file, `[router]\nurl = "http://127.0.0.1:9"\napi_key = "a-key"\n${MODEL}`);
  const proxy = place.launch(['provide', '--config', file], noted());
  await proxy.wrote('no connection to the router');
  proxy.signal('SIGTERM');
  await proxy.exited;
  await within('provide');
  const loaded = (await files()).join('\n');
  for (const module of [
    'provider-models',
    'store',
    'chains',
    'http',
    'catalog',
    'gateway',
    'openai',
    'mcp',
    'a2a',
    'media',
    'rpc',
    'pages',
    'app',
  ])
    expect(loaded).not.toContain(`/src/${module}/index.ts`);
});

const MODEL = `[[models]]
name = "a/model"
display_name = "A model"
provider_name = "Somebody"
context_length = 1000
[models.pricing]
prompt = 1
completion = 1
[models.params]
model = "m"
api_base = "http://127.0.0.1:9/v1"
api_key = "k"
`;
