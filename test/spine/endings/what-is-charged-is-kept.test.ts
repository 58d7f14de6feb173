import { randomBytes } from 'node:crypto';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { createKeptResponses } from '#kept-responses';
import { begin, chatLine, clientAt, ended, resultsOf } from '../../openai/batches/support/batch-client.ts';
import { until } from '../../support/cluster.ts';
import { emptyDataDirectory } from '../../support/data-directory.ts';
import { openEngine } from '../../support/engines.ts';
import { freshDatabase } from '../../support/fresh-database.ts';
import { startGateway, type Gateway } from '../../support/gateway.ts';
import { startProvider, type TestProvider } from '../../support/provider.ts';
import { IDENTITY_SEED, MODEL, modelBlock, startSpine, UNHURRIED } from '../../support/spine.ts';

// Gateways in processes of their own, which are killed at each step between the row of an answer that is to be kept and
// its end: what was charged is answered afterwards, or given back.

const SETTLED = 'src/billing/bill.ts';
const KEPT = 'src/openai/kept-responses/create-kept-responses.ts';
const BACKGROUND = 'src/openai/responses/background/background.ts';
const STEPS = {
  'background: the row is stored': { file: BACKGROUND, behind: 'events,\n  );' },
  'background: the money is locked': {
    file: BACKGROUND,
    behind: 'const refusal = await Promise.race([locked, answering]);',
  },
  'background: the answer is stored': { file: KEPT, behind: "if (results.at(-1)!.length === 0) return 'gone';" },
  'foreground: the row is stored': {
    file: 'src/openai/responses/kept/keep-responses.ts',
    behind: 'await keptResponses.expect(place).catch(onError);',
  },
  'foreground: the answer is stored': {
    file: KEPT,
    behind: 'SQL.addItems, params: [id, listParam(items)] }]),\n      ]);',
  },
  'the provider has answered': { file: SETTLED, behind: 'let resolution: CallResolution;' },
  'the call is charged': { file: SETTLED, behind: 'if (!this.#isFree) result = await ledger.settle(request);' },
  'the line is stored': {
    file: 'src/openai/batch-jobs/run-lines.ts',
    behind: 'if (ended.length === 0) return this.#claim.lose();',
  },
} as const;
type Step = keyof typeof STEPS;

const FUNDS = 1_000_000;
/** 11 prompt tokens and 5 completion tokens at 1 and 2 USD per 1M, in micro-USD. */
const COST = 21;
const PING = 'ping !tokens:5';
const TOML = `${UNHURRIED}[upstream]\ncall_timeout_ms = 20000\n[billing]\nsweep_ms = 200\ndrain_ms = 1000\n`;

/** By day, one step is enough where nothing was charged. */
const inDeep = <C>(one: C): readonly C[] => (process.env['TOLLGATE_DEEP'] === '1' ? [one] : []);

const closing: (() => Promise<unknown>)[] = [];

interface Mortal {
  readonly gateway: Gateway;
  readonly provider: TestProvider;
  /** Lets the gateway die at this step, once. */
  arm(step: Step): void;
  disarm(): void;
  /** Resolves when it is dead. */
  died(): Promise<void>;
  /** Resolves when it is dead, with true, or when something else is so. */
  diesBefore(isSo: () => Promise<boolean>): Promise<boolean>;
}

async function startMortal(databaseUrl?: string): Promise<Mortal> {
  const provider = await startProvider();
  closing.push(() => provider.stop());
  const file = join(emptyDataDirectory(), 'dies-at');
  const hook = pathToFileURL(join(import.meta.dirname, '../../support/dies-at.mjs')).href;
  const gateway = await startGateway({
    toml: TOML + modelBlock({ provider: 'Test', url: provider.url }),
    env: {
      TOLLGATE_IDENTITY_SEED: IDENTITY_SEED,
      TEST_UPSTREAM_KEY: 'upstream-secret-canary',
      NODE_OPTIONS: `--import=${hook}`,
      STEPS: JSON.stringify(STEPS),
      DIES_AT: file,
    },
    ...(databaseUrl === undefined ? {} : { databaseUrl }),
  });
  closing.push(() => gateway.stop());
  return {
    gateway,
    provider,
    arm: (step) => writeFileSync(file, step),
    disarm: () => rmSync(file, { force: true }),
    async died() {
      await until(() => !existsSync(file), 'it came to the step');
      await gateway.kill9();
    },
    async diesBefore(isSo) {
      await until(
        async () => !existsSync(file) || (await isSo().catch(() => false)),
        'it came to the step, or further',
      );
      if (existsSync(file)) return false;
      await gateway.kill9();
      return true;
    },
  };
}

async function close(): Promise<void> {
  for (const one of closing.splice(0).toReversed()) await one();
}

describe('a gateway that is killed, and starts again,', () => {
  let mortal: Mortal;
  beforeAll(async () => {
    mortal = await startMortal();
  });
  afterAll(close);
  let key: string;
  const post = (path: string, body: object, headers: Readonly<Record<string, string>> = {}) =>
    fetch(`${mortal.gateway.baseUrl}/api/v1${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  const get = (path: string) =>
    fetch(`${mortal.gateway.baseUrl}/api/v1${path}`, { headers: { authorization: `Bearer ${key}` } });
  let accounts = 0;
  async function open(): Promise<void> {
    ({ key } = await mortal.gateway.openAccount(`caller-${(accounts += 1)}`, FUNDS / 1e6));
  }

  async function restart(): Promise<void> {
    await mortal.died();
    await mortal.gateway.restart();
  }

  /** The account has spent so much, nothing is locked, and the books are in order. */
  async function expectSpent(amount: number): Promise<void> {
    expect(await (await get('/session/balance')).json()).toMatchObject({
      balance_micro_usdc: FUNDS - amount,
      locked_micro_usdc: 0,
    });
    expect(await mortal.gateway.admin('GET', '/audit')).toMatchObject({ data: { ok: true } });
  }

  const idOfItsCall = async () => {
    const { data } = (await (await get('/generations')).json()) as {
      readonly data: readonly { readonly id: string }[];
    };
    return data[0]!.id.replace('gen-', 'resp_');
  };
  const create = (more: object) => post('/responses', { model: MODEL, input: PING, max_output_tokens: 50, ...more });

  test.each<[Step, 'answered' | 'free' | 'given back']>([
    ['background: the row is stored', 'free'],
    ...inDeep<[Step, 'free']>(['background: the money is locked', 'free']),
    ['the provider has answered', 'free'],
    ['the call is charged', 'given back'],
    ['background: the answer is stored', 'answered'],
  ])('background: when %s, its response is %s', async (step, end) => {
    await open();
    mortal.arm(step);
    const begun = await create({ background: true, stream: true }).catch(() => null);
    const id = begun && (await firstId(begun));
    await restart();
    if (end === 'answered') {
      expect(await (await get(`/responses/${id ?? (await idOfItsCall())}`)).json()).toMatchObject({
        status: 'completed',
        usage: { cost: COST / 1e6 },
      });
      return expectSpent(COST);
    }
    if (id !== null) {
      const words = end === 'free' ? 'Nothing is charged' : 'What it was charged is given back';
      expect(await (await get(`/responses/${id}`)).json()).toMatchObject({
        status: 'failed',
        error: { message: expect.stringContaining(words) },
      });
      expect(await (await get(`/responses/${id}?stream=true`)).text()).toContain('event: response.failed');
    }
    await expectSpent(0);
  });

  test.each<[Step, 'answered' | 'gone, and free']>([
    ['foreground: the row is stored', 'gone, and free'],
    ...inDeep<[Step, 'gone, and free']>(['the provider has answered', 'gone, and free']),
    ['the call is charged', 'gone, and free'],
    ['foreground: the answer is stored', 'answered'],
  ])('foreground: when %s, its kept response is %s', async (step, end) => {
    await open();
    mortal.arm(step);
    const begun = await create({ stream: true }).catch(() => null);
    const id = begun && (await firstId(begun));
    await restart();
    if (id !== null) expect((await get(`/responses/${id}`)).status).toBe(end === 'answered' ? 200 : 404);
    await expectSpent(end === 'answered' ? COST : 0);
    // Neither has left something behind.
    await (await create({})).json();
    await expectSpent(end === 'answered' ? 2 * COST : COST);
  });

  test.each<[Step, calls: number]>([
    ...inDeep<[Step, number]>(['the provider has answered', 4]),
    ['the call is charged', 4],
    ['the line is stored', 3],
  ])('in a batch: when %s, each line is answered and charged once', async (step, calls) => {
    await open();
    const client = () => clientAt(`${mortal.gateway.baseUrl}/v1`, key);
    const asked = mortal.provider.log.length;
    mortal.arm(step);
    const { id } = await begin(
      client(),
      ['a', 'b', 'c'].map((name) => chatLine(name, PING)),
    );
    await restart();
    const batch = await ended(client(), id);
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 3, failed: 0 } });
    expect((await resultsOf(client(), batch)).output.map((line) => line.custom_id)).toEqual(['a', 'b', 'c']);
    // Those that ran beside it when it was killed are called again too.
    expect(mortal.provider.log.length - asked).toBeGreaterThanOrEqual(calls);
    await expectSpent(3 * COST);
  });

  const lineLost = (name: string) => [
    { custom_id: name, error: { code: 'gateway_gone', message: expect.stringContaining('given back') } },
  ];

  test('in a batch: the only line is not called again, because its first charge was the money for it', async () => {
    await open();
    const client = () => clientAt(`${mortal.gateway.baseUrl}/v1`, key);
    mortal.arm('the call is charged');
    const { id } = await begin(client(), [chatLine('a', PING)]);
    await restart();
    const batch = await ended(client(), id);
    expect(batch.request_counts).toEqual({ total: 1, completed: 0, failed: 1 });
    expect((await resultsOf(client(), batch)).errors).toMatchObject(lineLost('a'));
    await expectSpent(0);
  });

  test('in a batch: a line whose charge was given back twice is not called again', async () => {
    await open();
    const client = () => clientAt(`${mortal.gateway.baseUrl}/v1`, key);
    mortal.arm('the line is stored');
    const { id } = await begin(client(), [chatLine('a', PING), chatLine('b', `${PING} !head-delay:1500`)]);
    await mortal.died();
    // The slow line may have been charged before the gateway died for the first time.
    for (let deaths = 1; deaths < 4; deaths++) {
      mortal.arm('the call is charged');
      await mortal.gateway.restart();
      if (!(await mortal.diesBefore(async () => (await client().batches.retrieve(id)).status === 'completed'))) break;
    }
    mortal.disarm();
    const results = await resultsOf(client(), await ended(client(), id));
    expect(results.output).toMatchObject([{ custom_id: 'a' }]);
    expect(results.errors).toMatchObject(lineLost('b'));
    await expectSpent(COST);
  });
});

describe('a gateway of several that is killed', () => {
  afterEach(close);

  test('after a charge that came when it was taken for gone leaves what another one gives back later', async () => {
    const database = await freshDatabase(inject('postgresUrl'));
    closing.push(() => database.drop());
    const { gateway, provider, arm, died } = await startMortal(database.url);
    let late = 0;
    const other = await startSpine({
      databaseUrl: database.url,
      provider,
      toml: TOML,
      now: () => Date.now() + late,
      elapsed: () => performance.now() + late,
    });
    closing.push(() => other.stop());
    const before = await other.balance();
    const headers = { authorization: `Bearer ${other.key}`, 'content-type': 'application/json' };
    const body = { model: MODEL, input: PING, max_output_tokens: 50, background: true };
    const gate = Promise.withResolvers<void>();
    provider.hold(gate.promise);
    arm('the call is charged');
    const url = `${gateway.baseUrl}/api/v1/responses`;
    const begun = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    const { id } = (await begun.json()) as { readonly id: string };
    const shown = async () => (await (await fetch(`${other.url}/responses/${id}`, { headers })).json()) as object;
    late = 61_000;
    const failed = (words: string) => ({ status: 'failed', error: { message: expect.stringContaining(words) } });
    expect(await shown()).toMatchObject(failed('Nothing is charged'));
    gate.resolve();
    await died();
    expect((await other.balance()).available).toBe(before.available - BigInt(COST));
    // When its lock would have expired.
    late = 200_000;
    await until(async () => JSON.stringify(await shown()).includes('given back'), 'it is given back');
    expect(await shown()).toMatchObject(failed('What it was charged is given back'));
    expect(await other.balance()).toEqual(before);
    expect(await other.faults()).toEqual([]);
  });
});

test('a response is not taken for lost while its client reads it slowly', async () => {
  const { database, dispose } = await openEngine('sqlite');
  onTestFinished(dispose);
  let at = 1_700_000_000_000;
  const most = 1e9;
  const limits = {
    keepMs: most,
    accountBytesMax: most,
    accountCountMax: most,
    bytesMax: most,
    backgroundCountMax: most,
  };
  const gateway = () =>
    createKeptResponses({
      database,
      limits,
      longestLockMs: 1_000,
      secret: randomBytes(32),
      now: () => at,
    });
  const [answering, other] = [gateway(), gateway()];
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  await answering.expect({ id: 'resp_12345678', account: 'a', within: null, service: 's' });
  for (let halves = 0; halves < 6; halves += 1) {
    at += 500;
    vi.advanceTimersByTime(500);
    await until(async () => (await other.running.lost(10)).length === 0, 'its gateway says that it is there');
  }
  at += 1_001;
  expect(await other.running.lost(10)).toMatchObject([{ id: 'resp_12345678', run: 'answering' }]);
});

/** The id of a response from the first event of its stream, which ends without an end. null: before the first event. */
async function firstId(stream: Response): Promise<string | null> {
  let text = '';
  try {
    for await (const piece of stream.body!.pipeThrough(new TextDecoderStream())) text += piece;
  } catch {
    // Its gateway was killed.
  }
  return /"id":"(resp_\w+)"/.exec(text)?.[1] ?? null;
}
