import { confinesPackages } from '../../../scripts/test-tiers.ts';
import { describe, expect, test } from 'vitest';
import { BLOCKS, readOffers } from '../../../src/server/config/blocks.ts';
import type { Option, OptionTable } from '../../../src/server/config/option.ts';
import { type ConfigReading, readTable } from '../../../src/server/config/reading.ts';
import type { Service } from '../../../src/server/config/service.ts';
import { parseToml, type Table } from '../../../src/server/config/toml.ts';
import { loadProviderFile } from '../../../src/providers/proxy/provider-file.ts';
import { ConfigError, type ConfigProblem } from '../../../src/server/config/problem.ts';
import { type Case, CASES } from './block-cases.ts';
import { valuesOfFormat } from './format-values.ts';
import { block, type BlockTable } from './load.ts';

const ROUTER = '[router]\nurl = "https://r.example"\napi_key = "k"\n';
const load = (toml: string) =>
  loadProviderFile({ file: '/etc/acme/provider.toml', text: ROUTER + toml, env: { KEY: 'secret-1' } }).services[0]!;
const problemsOf = (toml: string): readonly ConfigProblem[] => {
  try {
    load(toml);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
};

const reading = (): ConfigReading => ({ file: null, lineOf: () => null, env: {}, problems: [] });

/** The value of one option in a block. It must be there. */
function valueIn(block: Table, option: string, offer: OptionTable): unknown {
  const [name = '', key] = option.split('.');
  const found = key === undefined ? block[name] : (block[name] as Table)[key];
  expect(found).toBeDefined();
  const read = reading();
  const one = { [option]: offer[option]! };
  const { values } = readTable({ [name]: key === undefined ? found : { [key]: found } }, 'x', one, read);
  expect(read.problems).toEqual([]);
  return values[option];
}

function wholeOf<T>(work: Generator<void, T, undefined>): T {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}

function offersOf(document: Table): readonly Service[] {
  const read = reading();
  const services = wholeOf(readOffers(document, { max: 1, oneProvider: true }, read));
  expect(read.problems).toEqual([]);
  return services;
}

const all = Object.entries(CASES).flatMap(([table, cases]) =>
  Object.entries(cases).map(([option, one]) => [table as BlockTable, option, one] as const),
);
const refused = confinesPackages() ? '-' : 'params.sdk'; // See test/providers/ai-sdk/refused-on-old-node.test.ts.

test.each(Object.entries(CASES))('every option of [[%s]] has a case in block-cases.ts', (table, cases) => {
  const { offer, target } = BLOCKS[table as BlockTable];
  expect(Object.keys(cases).toSorted()).toEqual([...Object.keys(offer), ...Object.keys(target)].toSorted());
});

/** A block in which only this option is set, with what it needs. null: it is absent. */
const blockWith = (table: BlockTable, option: string, one: Case, value: string | null): string =>
  block(table, {
    // A default block has per_second as a table of its own.
    ...(table === 'videos' && option === 'pricing.per_second' ? { 'pricing.per_second.720p': null } : {}),
    ...one.with,
    [option]: value,
  });

const offered = all.filter(([table, option]) => Object.hasOwn(BLOCKS[table].offer, option));

test.each(offered)('%s.%s is in the block that is written for its service', (table, option, one) => {
  const { offer, toBlock } = BLOCKS[table];
  const text = blockWith(table, option, one, one.toml);
  const [given] = parseToml(text, null)[table] as readonly Table[];
  const { service } = load(text);
  const made = toBlock(service);
  expect(valueIn(made, one.writtenAs ?? option, offer)).toEqual(valueIn(given!, option, offer));
  expect(offersOf({ [table]: [made] })).toEqual([service]);
});

const valueAt = (config: unknown, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>((value, name) => (value as Record<string, unknown> | null | undefined)?.[name], config);

describe.each(all.filter(([, option]) => !option.startsWith(refused)))('%s.%s', (table, option, one) => {
  const written = (value: string | null) => blockWith(table, option, one, value);
  const { takes } = { ...BLOCKS[table].offer, ...BLOCKS[table].target }[option] as Option<unknown>;

  test('is set by the file', () => {
    expect(valueAt(load(written(one.toml)), one.at)).toEqual(one.is);
  });

  test('has its default without it, or is missed', () => {
    const absent =
      option === 'endpoint' && table === 'tools' ? block(table, { endpoint: null, command: '"x"' }) : written(null);
    const usable = option === 'command' || option === 'params.sdk' ? block(table) : absent;
    if (one.required !== true) expect(valueAt(load(usable), one.at)).toEqual(one.fallback);
    else expect(problemsOf(usable)).toMatchObject([{ key: `${table}[0].${option}`, wrong: 'is missing' }]);
  });

  test.each([...(valuesOfFormat(takes)?.wrong ?? []), ...(one.wrong ?? [])])(
    'refuses %s with line and key',
    (wrong) => {
      const problems = problemsOf(written(wrong));
      expect(problems.length).toBeGreaterThan(0);
      const [problem] = problems;
      expect(problem!.line).toBeGreaterThan(3);
      expect(problem!.key.startsWith(`${table}[0].${option}`)).toBe(true);
      expect(problem!.right).not.toBe('');
    },
  );
});
