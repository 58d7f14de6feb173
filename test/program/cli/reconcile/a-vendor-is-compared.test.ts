import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { awayFromMidnight } from '../../../support/away-from-midnight.ts';
import { type ListingProvider, startListingProvider } from '../../../support/listing-provider.ts';
import type { ServerProcess } from '../../../support/server-process.ts';
import { chat, makePlace, type Place } from '../tollgate.ts';

const CALLS = 3;

let place: Place;
let provider: ListingProvider;
let breaking: Server;
let gateway: ServerProcess;
let day: string;
const env = () => ({ OPENAI_API_KEY: 'sk-of-the-test', OPENAI_BASE_URL: provider.url });

beforeAll(async () => {
  await awayFromMidnight();
  place = await makePlace();
  provider = await startListingProvider(['gpt-4.1-mini', 'gpt-4o']);
  // Takes a request and breaks off, as a vendor does that has begun to work.
  breaking = createServer((socket) => socket.once('data', () => socket.destroy()).on('error', () => {}));
  breaking.listen(0, '127.0.0.1');
  await once(breaking, 'listening');
  const port = (breaking.address() as AddressInfo).port;
  await writeFile(
    join(place.dir, 'tollgate.toml'),
    `[[providers]]
use = "openai"
markup = "10%"

[[models]]
name = "acme/chat"
provider_name = "Vendor"
pricing = { prompt = 3, completion = 12 }
cost = { prompt = 2.5, completion = 10, input_cache_read = 1.25 }
params = { model = "large-1", api_base = "${provider.url}" }

[[models]]
name = "acme/claims"
provider_name = "Claims"
pricing = { prompt = 3, completion = 12 }
params = { model = "large-2", api_base = "${provider.url}" }

[[models]]
name = "acme/broken"
provider_name = "Vendor"
pricing = { prompt = 3, completion = 12 }
params = { model = "large-1", api_base = "http://127.0.0.1:${port}/v1" }
`,
  );
  gateway = await place.gateway(['start', '--config', 'tollgate.toml'], env());
  const dev = (await place.read('dev.json')) as never;
  day = new Date().toISOString().slice(0, 10);
  provider.bill({ prompt_tokens: 20, completion_tokens: 100, total_tokens: 120 });
  const ask = async (model: string) => (await chat(dev, { model })).status;
  for (let made = 0; made < CALLS; made += 1) expect(await ask('openai/gpt-4.1-mini')).toBe(200);
  provider.bill({ prompt_tokens: 20, completion_tokens: 100, prompt_tokens_details: { cached_tokens: 8 } });
  expect(await ask('acme/chat')).toBe(200);
  // More tokens than the bytes of the request: the claim is cut here, and the vendor bills it.
  provider.bill({ prompt_tokens: 5_000, completion_tokens: 100, total_tokens: 5_100 });
  expect(await ask('acme/claims')).toBe(200);
  expect(await ask('acme/broken')).toBeGreaterThanOrEqual(500);
});
afterAll(async () => {
  await place.clear();
  await provider.stop();
  breaking.close();
});

interface Result {
  readonly providers: readonly string[];
  readonly lines: readonly object[];
  readonly totals: { readonly settled: { readonly requests: number } | null };
  readonly isBeyond: boolean;
  readonly reasons: readonly { readonly kind: string; readonly text: string }[];
}

const put = (name: string, text: string) => writeFile(join(place.dir, name), text);
const run = (...args: string[]) => place.run(['reconcile', ...args, '--config', 'tollgate.toml'], env());

/** The result as JSON, once the tables of the database have all calls. */
const result = (requests: number, ...args: string[]) =>
  vi.waitFor(
    async () => {
      const finished = await run(...args, '--json');
      const read = JSON.parse(finished.stdout) as Result;
      expect(read.totals.settled?.requests, finished.output).toBe(requests);
      return { code: finished.code, ...read };
    },
    { timeout: 30_000 },
  );

const USAGE = 'start_time_iso,model,num_model_requests,input_tokens,output_tokens,input_cached_tokens';
const COSTS = 'start_time_iso,amount_value,amount_currency,line_item';
const usage = (...rows: string[]) => [USAGE, ...rows.map((row) => `${day}T00:00:00+00:00,${row}`), ''].join('\n');
const costs = (...rows: string[]) => [COSTS, ...rows.map((row) => `${day}T00:00:00+00:00,${row}`), ''].join('\n');

it('usage and costs that agree: exit code 0, and the margin of the markup', async () => {
  await put('usage.csv', usage(`gpt-4.1-mini-2025-04-14,${CALLS},60,300,0`));
  await put(
    'costs.csv',
    costs('0.000024,usd,"gpt-4.1-mini-2025-04-14, input"', '0.00048,usd,"gpt-4.1-mini-2025-04-14, output"'),
  );
  const compared = await result(CALLS, 'openai', 'usage.csv', 'costs.csv');
  expect(compared).toMatchObject({
    code: 0,
    isBeyond: false,
    providers: ['openai'],
    reasons: [],
    lines: [
      {
        date: day,
        model: 'gpt-4.1-mini',
        billed: { requests: CALLS, prompt: 60, completion: 300, cost: 504 },
        settled: { requests: CALLS, prompt: 60, completion: 300, cost: 504, charged: 555 },
        difference: 0,
        margin: 51,
      },
    ],
  });
  const { code, stdout } = await run('openai', 'usage.csv', 'costs.csv');
  expect(code).toBe(0);
  expect(stdout).toMatch(new RegExp(`${day} +gpt-4.1-mini +3 +60 +300 +0.000504 +0.000555 +0.000051 +-\n`));
  expect(stdout).toContain('differ by no more than 1 %');
});

it('what the vendor has beyond the calls here is beyond the bound, and is explained', async () => {
  await put('more.csv', usage(`gpt-4.1-mini-2025-04-14,${CALLS + 1},70,301,5`, 'gpt-5-2025-08-07,2,10,10,0'));
  const compared = await result(CALLS, 'openai', 'more.csv');
  expect([compared.code, compared.isBeyond]).toEqual([1, true]);
  expect(compared.reasons.map(({ kind }) => kind)).toEqual(['not_ours', 'requests']);
  const { code, stdout } = await run('openai', 'more.csv', '--bound', '100%');
  expect(code).toBe(0);
  expect(stdout).toContain('3 / 4');
  expect(stdout).toContain('No call here was of gpt-5.');
});

it('a result that is kept is in the console and the metrics, in place of the one before', async () => {
  const { base_url, admin_key } = (await place.read('gateway.json')) as { base_url: string; admin_key: string };
  const get = async (path: string) =>
    (await fetch(base_url + path, { headers: { authorization: `Bearer ${admin_key}` } })).text();
  const kept = async () => (JSON.parse(await get('/admin/v1/reconciliation/results')) as { data: object[] }).data;
  expect(await kept()).toEqual([]);
  expect((await run('openai', 'usage.csv', 'costs.csv', '--keep')).code).toBe(0);
  expect(await kept()).toMatchObject([{ vendor: 'openai', beyond: false, difference: 0, reasons: [] }]);
  expect((await run('openai', 'more.csv', '--keep')).code).toBe(1);
  expect(await kept()).toMatchObject([
    {
      vendor: 'openai',
      first_day: day,
      last_day: day,
      bound: 0.01,
      beyond: true,
      difference: 1,
      models: [
        { model: 'gpt-4.1-mini', requests: CALLS, billed_requests: CALLS + 1, difference: 0.25, beyond: true },
        { model: 'gpt-5', requests: 0, billed_requests: 2, difference: 1 },
        { model: null, requests: CALLS, billed_requests: CALLS + 3 },
      ],
      reasons: [{ kind: 'not_ours' }, { kind: 'requests' }],
    },
  ]);
  const metrics = await get('/metrics');
  expect(metrics).toContain('tollgate_reconciliation_difference_ratio{vendor="openai"} 1\n');
  expect(metrics).toContain('tollgate_reconciliation_beyond{vendor="openai"} 1\n');
  expect(metrics).toMatch(/tollgate_reconciliation_age_seconds\{vendor="openai"\} \d/);
});

it('a call that broke off here may be billed there, and another provider is compared by its name', async () => {
  await put(
    'vendor.csv',
    `day,model,requests,prompt_tokens,completion_tokens,cached_tokens,cost_usd\n${day},large-1,2,30,100,8,0.001065\n`,
  );
  const compared = await result(1, 'csv', 'vendor.csv', '--provider', 'Vendor');
  expect(compared).toMatchObject({
    code: 1,
    // 12 x 2.5 + 8 x 1.25 + 100 x 10; the offer here has no price for a cache.
    lines: [{ model: 'large-1', settled: { requests: 1, cost: 1040, charged: 1260, cached: 8 }, margin: 195 }],
  });
  expect(compared.reasons.map(({ kind }) => kind)).toEqual(['broken', 'requests']);
  expect(compared.reasons[1]!.text).toContain('not more than attempts that broke off');
});

it('a claim that was cut here explains that more is billed there', async () => {
  await put('claims.csv', `day,model,requests,prompt_tokens\n${day},large-2,1,5000\n`);
  const { code, reasons } = await result(1, 'csv', 'claims.csv', '--provider', 'Claims');
  expect([code, reasons.map(({ kind }) => kind)]).toEqual([1, ['claims']]);
});

it('costs that nobody knows here are not compared, and what was compared is said', async () => {
  await put('claims-costs.csv', `day,model,cost_usd\n${day},large-2,100\n`);
  const nothing = await run('csv', 'claims-costs.csv', '--provider', 'Claims', '--keep');
  expect(nothing).toMatchObject({ code: 2, output: expect.stringContaining('Nothing could be compared') });
  await put('claims-both.csv', `day,model,requests,cost_usd\n${day},large-2,1,100\n`);
  const { code, stdout } = await run('csv', 'claims-both.csv', '--provider', 'Claims');
  expect([code, stdout]).toEqual([0, expect.stringContaining('1 % in calls and tokens; costs were not compared.')]);
});

it('a file or a line that is wrong ends with code 2, and nothing is compared', async () => {
  await put('other.csv', 'Date,Slug\n');
  const wrong = async (text: string, ...args: string[]) => {
    const finished = await run(...args);
    expect(finished).toMatchObject({ code: 2, stdout: '', output: expect.stringContaining(text) });
  };
  await wrong('Its columns: Date, Slug', 'openai', 'other.csv');
  await wrong('no-such.csv cannot be read', 'openai', 'no-such.csv');
  await wrong('"acme" is no known vendor. Known are openai, anthropic, openrouter, csv', 'acme', 'usage.csv');
  await wrong('give --provider', 'csv', 'vendor.csv');
  await wrong('--bound is "much"', 'openai', 'usage.csv', '--bound', 'much');
  await wrong('did you mean Vendor? Known are ', 'csv', 'vendor.csv', '--provider', 'vendor');
});

it('the same on the database of a stopped gateway, and the books are as before', async () => {
  gateway.signal('SIGTERM');
  await gateway.exited;
  expect(await result(1, 'csv', 'vendor.csv', '--provider', 'Vendor')).toMatchObject({
    code: 1,
    lines: [{ model: 'large-1', settled: { cost: 1040, charged: 1260 } }],
  });
  // Without a gateway the provider is not asked for its models. They are known by the name of the provider.
  const { reasons, lines } = await result(CALLS, 'openai', 'usage.csv', 'costs.csv');
  expect(lines).toMatchObject([{ model: 'gpt-4.1-mini', settled: { cost: null, charged: 555 }, margin: 51 }]);
  expect(reasons.map(({ kind }) => kind)).toEqual(['cost_unknown']);
  expect(await place.run(['audit', '--config', 'tollgate.toml'], env())).toMatchObject({
    code: 0,
    output: expect.stringContaining('The books are right.'),
  });
});
