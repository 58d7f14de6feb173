import { afterAll, beforeAll, expect, it } from 'vitest';
import { compare, type Comparison, type OwnRow } from '../../../../src/program/cli/reconcile/compare.ts';
import { explain } from '../../../../src/program/cli/reconcile/explain.ts';
import { readExport } from '../../../../src/program/cli/reconcile/read-export.ts';
import { atThisLoad } from '../../../support/at-this-load.ts';
import { ask, startSpine, UNHURRIED, type Generation, type Spine } from '../../../support/spine.ts';
import { startProvider, type TestProvider } from '../../../support/provider.ts';
import { randomOf } from '../../../spine/three-months.ts';

// A vendor bills what it did: also failures, with other counts, a day late, rounded, or with calls of others. All that
// differs is found, to the token, and nothing else.

const TRIALS = process.env['TOLLGATE_DEEP'] === '1' ? 300 : 16;
const MODELS = ['a', 'b'];
/** 10^-12 USD for a token. */
const COST = { prompt: 370_000n, completion: 1_913_000n };
const DAY_MS = 86_400_000;
const FIRST = Date.parse('2026-11-02T00:00:00Z');
const DAYS = 3;
const dateOf = (at: number) => new Date(at).toISOString().slice(0, 10);

let at = FIRST;
let vendor: TestProvider;
let spine: Spine;
beforeAll(async () => {
  vendor = await startProvider();
  const blocks = Array.from({ length: TRIALS }, (_, trial) =>
    MODELS.map(
      (model) => `
[[models]]
name = "t${trial}/${model}"
provider_name = "Vendor ${trial}"
context_length = 100000
pricing = { prompt = 3, completion = 12 }
cost = { prompt = 0.37, completion = 1.913 }
params = { model = "m${trial}-${model}", api_base = "${vendor.url}", api_key = "unused" }
`,
    ).join(''),
  );
  spine = await startSpine({
    provider: vendor,
    now: () => at,
    elapsed: () => performance.now(),
    credit: '1000',
    toml: `${UNHURRIED}[upstream]\ncooldown_ms = 1\n${blocks.join('')}`,
  });
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  await vendor.stop();
});

/** Figures of a day and a model, or what is more at the vendor. */
interface Figures {
  requests: number;
  prompt: number;
  completion: number;
  cached: number;
  reasoning: number;
}
const NONE: Figures = { requests: 0, prompt: 0, completion: 0, cached: 0, reasoning: 0 };
type Book = Map<string, Figures>;

function enter(book: Book, day: string, model: string, more: Partial<Figures>, sign = 1): void {
  const key = `${day} ${model}`;
  const sums = { ...(book.get(key) ?? NONE) };
  for (const name of Object.keys(more) as (keyof Figures)[]) sums[name] += sign * more[name]!;
  book.set(key, sums);
}

const FAULTS = ['broken', 'free', 'claims', 'midnight', 'others', 'foreign', 'late', 'cached', 'reasoning'] as const;
type Fault = (typeof FAULTS)[number];
/** They change what the vendor's bill is, so that rounding alone does not explain its costs. */
const CHANGES_COST: ReadonlySet<Fault> = new Set(['broken', 'free', 'claims', 'others', 'foreign', 'late']);

it.each(Array.from({ length: TRIALS }, (_, trial) => [trial]))(
  'what vendor %i has planted is found, and nothing else',
  async (trial) => {
    const random = randomOf(1_000 * Number(process.env['SEED'] ?? 60) + trial);
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
    // The first has no fault, then one alone each, and later some of them together.
    const faults = new Set<Fault>(
      trial === 0 ? [] : trial <= FAULTS.length ? [FAULTS[trial - 1]!] : FAULTS.filter(() => random() < 0.35),
    );
    const books: Book = new Map();
    /** What is more at the vendor than here. */
    const planted: Book = new Map();
    let [served, broken] = [0, 0];

    /** A call at the vendor, which enters what it has done into its books on the day of the request. */
    const call = async (model: string, words: string, whileHeld?: () => void) => {
      const begun = vendor.log.length;
      const day = dateOf(at);
      const held = Promise.withResolvers<void>();
      if (whileHeld) vendor.hold(held.promise);
      const answering = spine.post('/chat/completions', ask(words, { model: `t${trial}/${model}`, max_tokens: 4_000 }));
      if (whileHeld) {
        while (vendor.log.length === begun) await new Promise((resolve) => setImmediate(resolve));
        whileHeld();
        vendor.hold(null);
        held.resolve();
      }
      const answer = await answering;
      await answer.text();
      const attempts = vendor.log.slice(begun);
      const factor = words.includes('!usage:x1000') ? 1_000 : 1;
      // A refusal is not billed.
      const billed = attempts.filter(({ behaviour }) => behaviour.status === 200);
      const counted = billed.map(({ promptTokens, plannedTokens }) => ({
        requests: 1,
        prompt: promptTokens * factor,
        completion: plannedTokens * factor,
      }));
      for (const one of counted) enter(books, day, model, one);
      const here: Partial<Figures> = {};
      if (answer.status === 200) {
        const record: Generation = await spine.generation(answer.headers.get('x-generation-id'));
        Object.assign(here, {
          requests: 1,
          prompt: record.tokens_prompt,
          completion: record.tokens_completion,
        });
        served += 1;
      } else broken += billed.length;
      for (const one of counted) enter(planted, day, model, one);
      enter(planted, dateOf(at), model, here, -1);
      return { status: answer.status, counted: counted[0], here };
    };

    for (let day = 0; day < DAYS; day += 1) {
      at = FIRST + day * DAY_MS + 12 * 3_600_000;
      for (const model of MODELS) {
        for (let count = 1 + Math.floor(random() * 3); count > 0; count -= 1) {
          const { status, counted, here } = await call(model, `hi !tokens:${1 + Math.floor(random() * 300)}`);
          expect([status, here]).toEqual([200, counted]);
        }
        if (random() < 0.3) expect((await call(model, '!status:400')).status).not.toBe(200);
      }
    }

    const model = pick(MODELS);
    if (faults.has('broken')) {
      at = FIRST + Math.floor(random() * DAYS) * DAY_MS;
      expect((await call(model, '!cut-head:0')).status).not.toBe(200);
    }
    if (faults.has('free')) await call(model, 'hi !finish:error');
    if (faults.has('claims')) expect((await call(model, 'hi !usage:x1000')).status).toBe(200);
    if (faults.has('midnight')) {
      at = FIRST + DAY_MS - 1;
      const over = await call(model, 'hi !tokens:7', () => {
        at += 2;
      });
      expect(over.here).toEqual(over.counted);
    }
    const extra = (of: string, day: number, more: Partial<Figures>) => {
      const date = dateOf(FIRST + day * DAY_MS);
      enter(books, date, of, more);
      enter(planted, date, of, more);
    };
    if (faults.has('others')) extra(model, 1, { requests: 2, prompt: 31, completion: 17 });
    if (faults.has('foreign')) extra('foreign', 1, { requests: 1, prompt: 5, completion: 3 });
    // On a day on which a model has requests of others, too, these tokens may be theirs (differences-are-explained).
    const unchanged = MODELS.find((each) => each !== model)!;
    if (faults.has('cached')) extra(unchanged, 0, { cached: 4 });
    if (faults.has('reasoning')) extra(unchanged, 0, { reasoning: 3 });
    if (faults.has('late')) {
      // The vendor has not counted its last day yet.
      const key = `${dateOf(FIRST + (DAYS - 1) * DAY_MS)} ${model}`;
      for (const [name, value] of Object.entries(books.get(key)!)) extra(model, DAYS - 1, { [name]: -value });
      books.delete(key);
    }

    const withCosts = ![...faults].some((fault) => CHANGES_COST.has(fault));
    const places = pick([6, 12]);
    const columns = 'day,model,requests,prompt_tokens,completion_tokens,cached_tokens,reasoning_tokens';
    const file = [...books]
      .filter(([, sums]) => Object.values(sums).some((value) => value !== 0))
      .map(([key, { requests, prompt, completion, cached, reasoning }]) => {
        const [day, of] = key.split(' ') as [string, string];
        const pico = BigInt(prompt) * COST.prompt + BigInt(completion) * COST.completion;
        const usd = places === 6 ? Number((pico + 500_000n) / 1_000_000n) / 1e6 : Number(pico) / 1e12;
        const cells = [day, `m${trial}-${of}-2026-01-31`, requests, prompt, completion, cached, reasoning];
        return [...cells, ...(withCosts ? [usd.toFixed(places)] : [])].join(',');
      });
    const { rows } = readExport('csv', [columns + (withCosts ? ',cost_usd' : ''), ...file, ''].join('\n'), 'bill.csv');

    const read = async () => {
      const days = `start_date=${dateOf(FIRST)}&end_date=${dateOf(FIRST + (DAYS - 1) * DAY_MS)}`;
      const path = `/admin/v1/reconciliation?provider=${encodeURIComponent(`Vendor ${trial}`)}&${days}`;
      const answer = await fetch(spine.origin + path, { headers: { authorization: `Bearer ${spine.adminKey}` } });
      return ((await answer.json()) as { readonly data: { readonly rows: readonly OwnRow[] } }).data.rows;
    };
    await spine.quiet();
    await expect
      .poll(async () => (await read()).reduce((sum, { requests }) => sum + requests, 0), {
        timeout: atThisLoad(20_000),
      })
      .toBe(served);
    const comparison = compare(rows, await read(), 0);

    /* Every difference, to the token, and no other. */
    const differences = comparison.lines.flatMap(({ date, model: of, billed, settled }) => {
      const more = (name: keyof Figures) => (billed?.[name] ?? 0) - (settled?.[name] ?? 0);
      const figures = {
        requests: more('requests'),
        prompt: more('prompt'),
        completion: more('completion'),
        cached: more('cached'),
        reasoning: more('reasoning'),
      };
      return Object.values(figures).some((value) => value !== 0) ? [[`${date} ${of!.split('-')[1]}`, figures]] : [];
    });
    const isDifferent = ([, sums]: readonly [string, Figures]) => Object.values(sums).some((value) => value !== 0);
    expect(Object.fromEntries(differences)).toEqual(Object.fromEntries([...planted].filter(isDifferent)));

    /* And every reason, and no other. */
    const kinds = new Set(explain(comparison, null, dateOf(FIRST)).map(({ kind }) => kind));
    expect(kinds).toEqual(expectedKinds(comparison, { planted, faults, broken, model, withCosts }));
  },
);

interface Plan {
  readonly planted: Book;
  readonly faults: ReadonlySet<Fault>;
  readonly broken: number;
  readonly model: string;
  readonly withCosts: boolean;
}

function expectedKinds(
  { models, totals: { billed, settled } }: Comparison,
  { planted, faults, broken, model, withCosts }: Plan,
): ReadonlySet<string> {
  const more = (name: keyof Figures, of = '') =>
    [...planted].reduce((sum, [key, each]) => sum + (key.endsWith(of) ? each[name] : 0), 0);
  const expected = new Set<string>();
  if (broken > 0) expected.add('broken');
  for (const fault of ['free', 'claims', 'cached', 'reasoning'] as const) if (faults.has(fault)) expected.add(fault);
  if (faults.has('foreign')) expected.add('not_ours');
  if (more('requests') !== 0) expected.add('requests');
  if (withCosts && billed!.cost !== settled!.cost) expected.add('rounding');
  const agrees = (['requests', 'prompt', 'completion'] as const).every((name) => more(name, model) === 0);
  // With costs to compare, rounding makes a difference of the model, too.
  const isEven = !withCosts || models.every((each) => each.billed?.cost === each.settled?.cost);
  if (faults.has('midnight') && agrees && isEven) expected.add('neighbouring_days');
  return expected;
}
