import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { findFreePort } from '../../support/free-port.ts';
import { type ListingProvider, startListingProvider } from '../../support/listing-provider.ts';
import { chat, makePlace, type Place } from './tollgate.ts';

let place: Place;
let provider: ListingProvider;
beforeAll(async () => {
  place = await makePlace();
  // Twenty models with a price, and one without.
  const names = [
    'gpt-4.1 gpt-4.1-mini gpt-4.1-nano gpt-4o gpt-4o-mini gpt-5 gpt-5-mini gpt-5-nano gpt-5.1 gpt-5.2 gpt-5.4',
    'gpt-5.4-mini gpt-5.4-nano gpt-5.5 o1 o3 o3-mini o4-mini text-embedding-3-small text-embedding-3-large gpt-99',
  ];
  provider = await startListingProvider(names.join(' ').split(' '));
});
afterAll(async () => {
  await place.clear();
  await provider.stop();
});

const KEY = 'sk-canary-of-the-cli';
const env = () => ({ OPENAI_API_KEY: KEY, OPENAI_BASE_URL: provider.url });
const FILE = '[[providers]]\nuse = "openai"\n';

interface Report {
  readonly prices: { readonly version: string };
  readonly providers: readonly object[];
  readonly models: readonly { readonly name: string; readonly pricing: Record<string, unknown> }[];
  readonly not_offered: readonly { readonly name: string; readonly why: string }[];
}

it('from an empty folder, a key and two lines offer twenty priced models, which can be called', async () => {
  await writeFile(join(place.dir, 'two.toml'), FILE);
  const gateway = await place.gateway(['start', '--config', 'two.toml'], env());
  const dev = await place.read('dev.json');
  const listed = (await (
    await fetch(`${dev['base_url']}/api/v1/models?output_modalities=all`, {
      headers: { authorization: `Bearer ${dev['api_key']}` },
    })
  ).json()) as { data: { id: string }[] };
  expect(listed.data.filter(({ id }) => id.startsWith('openai/'))).toHaveLength(20);
  // 20 x 0.4 + 100 x 1.6 micro-USD.
  provider.bill({ prompt_tokens: 20, completion_tokens: 100, total_tokens: 120 });
  const answer = await chat(dev as never, { model: 'openai/gpt-4.1-mini' });
  expect([answer.status, ((await answer.json()) as { usage: { cost: number } }).usage.cost]).toEqual([200, 0.000168]);
  gateway.signal('SIGTERM');
  await gateway.exited;
  expect(gateway.output()).toContain('openai/…: 20 models offered, 1 not: tollgate models says why');
  expect(gateway.output()).not.toContain(KEY);
});

it('tells each price and where it is from, and what is not offered', async () => {
  const file = `${FILE}markup = "10%"\n[[models]]\nname = "openai/o1"\npricing = { prompt = 1, completion = 2 }\nparams = { model = "o1", api_base = "http://127.0.0.1:9/v1" }\n`;
  await writeFile(join(place.dir, 'tollgate.toml'), file);
  const { code, stdout, output } = await place.run(['models', '--config', 'tollgate.toml'], env());
  expect(code, output).toBe(0);
  const lines = stdout.split('\n');
  expect(lines[0]).toMatch(/^MODEL +CONTEXT +TAKES +IN +CACHED +OUT +MORE +PRICE FROM$/);
  expect(lines.find((line) => line.startsWith('openai/gpt-4.1-mini '))).toMatch(
    /^openai\/gpt-4.1-mini +1000000 +text\+image\+file +0\.44 +0\.11 +1\.76 +web_search 0\.011 +gpt-4\.1-mini$/,
  );
  expect(lines.find((line) => line.startsWith('openai/gpt-5.5 '))).toContain('above 271999: 11/49.5');
  expect(lines.find((line) => line.startsWith('openai/o1 '))).toMatch(/ 1 +- +2 +the file$/);
  expect(stdout).toMatch(
    /NOT OFFERED \(2\)\nopenai\/gpt-99 +the list of prices does not have it\nopenai\/o1 +the file has a \[\[models\]\] block/,
  );
  expect(output).toMatch(/List prices: genai-prices \d\S+ of \d{4}-\d\d-\d\d, \d+ days old/);
  expect(output).not.toContain(KEY);

  const json = await place.run(['models', '--config', 'tollgate.toml', '--json'], env());
  const report = JSON.parse(json.stdout) as Report;
  expect(report).toMatchObject({
    prices: { package: '@pydantic/genai-prices' },
    providers: [{ use: 'openai', prefix: 'openai', markup: '10%', names_from: 'provider', problem: null }],
  });
  expect(report.models.find(({ name }) => name === 'openai/gpt-4.1-mini')).toMatchObject({
    context_length: 1_000_000,
    pricing: { prompt: '0.44', completion: '1.76' },
    price_from: 'list',
    priced_as: 'gpt-4.1-mini',
  });
  expect(report.not_offered.map(({ name }) => name)).toEqual(['openai/gpt-99', 'openai/o1']);
});

it('a key that is not accepted ends it with 1', async () => {
  const refuses = await startListingProvider();
  onTestFinished(() => refuses.stop());
  refuses.list({ status: 401, json: { error: { message: 'Incorrect API key' } } });
  const said = await place.run(['models'], { OPENAI_API_KEY: KEY, OPENAI_BASE_URL: refuses.url });
  expect([said.code, said.stdout]).toEqual([1, 'No model is offered.\n']);
  expect(said.output).toContain('does not accept the key');
});

it('without a file it shows the providers whose key is there, or those that are named', async () => {
  const found = await place.run(['models', '--json'], env());
  expect((JSON.parse(found.stdout) as Report).models).toHaveLength(20);
  const named = await place.run(['models', 'deepseek', '--offline', '--json']);
  expect((JSON.parse(named.stdout) as Report).models.map(({ name }) => name)).toContain('deepseek/deepseek-v4-pro');
  // At its own address, OpenAI has service tiers.
  const offline = await place.run(['models', 'openai', '--offline', '--json']);
  const priced = Object.fromEntries(
    (JSON.parse(offline.stdout) as Report).models.map((one) => [one.name, one.pricing]),
  );
  expect(priced['openai/gpt-4.1-mini']).toMatchObject({
    prompt: '0.4',
    service_tiers: { batch: { prompt: '0.2', completion: '0.8', input_cache_read: '0.2' } },
  });
  expect(priced['openai/gpt-5']).toMatchObject({
    input_cache_read: '0.125',
    service_tiers: {
      batch: { prompt: '0.625', completion: '5', input_cache_read: '0.0625' },
      flex: { prompt: '0.625', completion: '5' },
      priority: { prompt: '2.5', completion: '20' },
    },
  });
  expect(priced['openai/gpt-5-pro']).not.toHaveProperty('service_tiers');
  const table = await place.run(['models', 'openai', '--offline']);
  expect(table.stdout).toMatch(/^openai\/gpt-4\.1-mini .* batch: 0\.2\/0\.8, priority: 0\.7\/2\.8 /m);
  expect(await place.run(['models'])).toMatchObject({
    code: 2,
    output: expect.stringContaining('no key of a provider'),
  });
  expect(await place.run(['models', 'opnai'])).toMatchObject({
    code: 2,
    output: expect.stringContaining('Did you mean openai?'),
  });
});

it('a file of providers that are not asked needs none of their keys', async () => {
  const text = '[[providers]]\nuse = "openai"\nonly = ["gpt-5"]\n\n[[providers]]\nuse = "deepseek"\n';
  await writeFile(join(place.dir, 'offline.toml'), `${text}api_key = "std::env::ANOTHER_NAME"\n`);
  const { code, stdout } = await place.run(['models', '--config', 'offline.toml', '--offline']);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^openai\/gpt-5 /m);
  expect(stdout).toMatch(/^deepseek\/deepseek-v4-pro /m);
});

it('a check of the file asks no provider', async () => {
  const before = provider.asked.length;
  const { code, stdout } = await place.run(['serve', '--config', 'two.toml', '--validate'], env());
  expect(code).toBe(0);
  expect(stdout).toContain(`provider  openai  openai/…  → ${provider.url}`);
  expect(stdout).toContain('tollgate models');
  expect(provider.asked.length).toBe(before);
});

it('a gateway starts although its provider does not answer, and says so', async () => {
  const gateway = await place.gateway(['serve', '--config', 'two.toml'], {
    ...env(),
    OPENAI_BASE_URL: 'http://127.0.0.1:9/v1',
    TOLLGATE_DATA: join(place.dir, 'other-data'),
  });
  gateway.signal('SIGTERM');
  await gateway.exited;
  expect(gateway.output()).toContain('127.0.0.1:9 could not be asked for its models');
  expect(gateway.output()).toMatch(/the models of the list of prices are offered until it answers \(\d+ models\)/);
});

it("a provider's proxy sells the models of a provider with a markup", async () => {
  const gateway = await place.gateway(['start'], {
    TOLLGATE_DATA: join(place.dir, 'router-data'),
    // A wallet signs in to the port that the gateway was told.
    PORT: String(await findFreePort()),
  });
  const dev = JSON.parse(await readFile(join(place.dir, 'router-data', 'dev.json'), 'utf8')) as Record<string, string>;
  expect(await place.run(['keygen', '--chain', 'solana', '--out', 'wallet.json'])).toMatchObject({ code: 0 });
  const router = `router = { url = "${dev['base_url']}", siwx = { chain_id = "solana:mainnet", keypair_file = "wallet.json" } }\n`;
  const sells = (more: string) =>
    writeFile(
      join(place.dir, 'provider.toml'),
      `${router}[[providers]]\nuse = "openai"\nprefix = "acme"\nmarkup = "50%"\n${more}`,
    );
  await sells('only = ["gpt-4.1-mini"]\n');
  const proxy = place.launch(['provide', '--config', 'provider.toml'], env());
  await proxy.wrote('registered');
  provider.bill({ prompt_tokens: 20, completion_tokens: 100, total_tokens: 120 });
  const answer = await chat(dev as never, { model: 'acme/gpt-4.1-mini' });
  // Half as much again as 168 micro-USD.
  expect([answer.status, ((await answer.json()) as { usage: { cost: number } }).usage.cost]).toEqual([200, 0.000252]);

  await sells('only = ["gpt-4.1-mini", "gpt-4.1"]\n');
  const reloaded = await place.run(['provide', '--config', 'provider.toml', '--reload'], env());
  expect([reloaded.code, reloaded.stdout]).toEqual([0, expect.stringContaining('+ model acme/gpt-4.1 prompt 3')]);
  const checked = await place.run(['provide', '--config', 'provider.toml', '--validate', '--no-probe'], env());
  expect([checked.code, checked.output]).toEqual([0, expect.stringContaining('acme/gpt-4.1-mini')]);
  for (const each of [proxy, gateway]) {
    each.signal('SIGTERM');
    await each.exited;
    expect(each.output()).not.toContain(KEY);
  }
});

it('a proxy that has no model to offer says why', async () => {
  const router = 'router = { url = "http://127.0.0.1:9", api_key = "k" }\n';
  const port = await findFreePort();
  await writeFile(
    join(place.dir, 'away.toml'),
    `${router}[[providers]]\nuse = "ollama"\napi_base = "http://127.0.0.1:${port}/v1"\npricing = { prompt = 0.1, completion = 0.1 }\n`,
  );
  for (const flags of [[], ['--validate']]) {
    const { code, output } = await place.run(['provide', '--config', 'away.toml', ...flags]);
    expect([code, output]).toEqual([
      1,
      expect.stringMatching(
        new RegExp(
          `offer no model now; ollama/…: nothing is offered: 127.0.0.1:${port} could not be asked.* ECONNREFUSED .*:${port}$`,
          'm',
        ),
      ),
    ]);
  }
});

it('names that a proxy may not take are refused before anything is dialled', async () => {
  const router = 'router = { url = "http://127.0.0.1:9", api_key = "k" }\n';
  await writeFile(join(place.dir, 'refused.toml'), `${router}[[providers]]\nuse = "anthropic"\n`);
  const { code, output } = await place.run(['provide', '--config', 'refused.toml', '--validate', '--no-probe'], {
    ANTHROPIC_API_KEY: 'sk-ant-x',
  });
  expect([code, output]).toEqual([1, expect.stringContaining('providers[0].prefix')]);
});

it('a start offers the models of a provider whose key is there, if a flag says so', async () => {
  const start = async (...args: string[]) => {
    const dir = join(place.dir, `start-${args.length}`);
    const gateway = await place.gateway(['start', ...args], { ...env(), TOLLGATE_DATA: dir });
    gateway.signal('SIGTERM');
    await gateway.exited;
    return gateway.output();
  };
  const hinted = await start();
  expect(hinted).toContain('OPENAI_API_KEY is set. To route to it too: npm start -- --with-openai');
  expect(hinted).not.toContain('openai/gpt-4.1');
  const started = await start('--with', 'openai', 'anthropic');
  expect(started).toContain('openai/…: 20 models offered');
  expect(started).toContain('ANTHROPIC_API_KEY is not set, so nothing is routed to Anthropic.');
  expect(await place.run(['start', '--with', 'opanai'], env())).toMatchObject({
    code: 2,
    output: expect.stringMatching(/--with takes openai, anthropic, .*, not opanai\. Did you mean openai\?/),
  });
});
