import { confinesPackages } from '../../../scripts/test-tiers.ts';
import { describe, expect, test } from 'vitest';
import { BLOCKS, readOffers } from '../../../src/config/blocks/blocks.ts';
import type { OptionTable } from '../../../src/config/option.ts';
import { type Reading, readTable } from '../../../src/config/reading.ts';
import type { Service, ServiceConfig } from '../../../src/config/service.ts';
import { parseToml, type Table } from '../../../src/config/toml.ts';
import { loadProviderFile } from '../../../src/provide/provider-file.ts';
import { ConfigError, type ConfigProblem } from '../../../src/config/problem.ts';
import { base, type Case, declarations, key, list, model, names, quantization, sdk } from './block-case.ts';
import { IMAGE_CASES } from './image-cases.ts';
import { PRICE_CASES } from './price-cases.ts';
import { block, type BlockTable } from './load.ts';

const command = { with: { endpoint: null, command: '"run"' } };
const ran = ({ target }: ServiceConfig) => (target.kind === 'command' ? target : null);

/** Every option of every kind of block is set by one case. */
const CASES: Readonly<Record<BlockTable, Readonly<Record<string, Case>>>> = {
  models: {
    ...names,
    ...declarations,
    ...quantization,
    context_length: {
      toml: '100',
      wrong: ['0', '1.5', '"1"'],
      of: ({ service }) => service.primitive === 'model' && service.model.contextLength,
      is: 100,
      fallback: 131_072,
    },
    max_output_tokens: {
      toml: '99',
      wrong: ['0', '131_073'],
      of: ({ service }) => service.primitive === 'model' && service.model.maxOutputTokens,
      is: 99,
      fallback: null,
      writtenAs: 'params.max_output_tokens',
    },
    input_modalities: {
      toml: '["audio", "text"]',
      wrong: ['[]', '["smell"]', '"text"'],
      of: ({ service }) => service.primitive === 'model' && service.model.inputModalities,
      is: ['audio', 'text'],
      fallback: ['text'],
    },
    output_modalities: {
      toml: '["image"]',
      wrong: ['[]', '[1]'],
      of: ({ service }) => service.primitive === 'model' && service.model.outputModalities,
      is: ['image'],
      fallback: ['text'],
    },
    'pricing.prompt': {
      toml: '1',
      wrong: ['-1', '10_001', '0.0009'],
      of: ({ service }) => service.rates.prompt,
      is: 1_000_000n,
    },
    'pricing.completion': {
      toml: '1',
      wrong: ['-1', '10_001', '0.0009'],
      of: ({ service }) => service.rates.completion,
      is: 1_000_000n,
    },
    'pricing.input_cache_read': {
      toml: '0',
      wrong: ['-1', '10_001', '0.0000002'],
      of: ({ service }) => service.rates.input_cache_read,
      is: 0n,
      fallback: undefined,
    },
    'pricing.input_cache_write': {
      toml: '2.5',
      wrong: ['-1', '10_001', '"much"'],
      of: ({ service }) => service.rates.input_cache_write,
      is: 2_500_000n,
      fallback: undefined,
    },
    'pricing.image': {
      toml: '1',
      wrong: ['-1', '101'],
      of: ({ service }) => service.rates.image,
      is: 1_000_000_000_000n,
      fallback: undefined,
    },
    ...PRICE_CASES,
    'params.model': { ...model, of: ({ service }) => service.primitive === 'model' && service.model.upstreamModel },
    'params.cap': {
      toml: '"max_completion_tokens"',
      wrong: ['3', '"max-tokens"', '""'],
      of: ({ service }) => service.primitive === 'model' && service.model.cap,
      is: 'max_completion_tokens',
      fallback: undefined,
    },
    'params.max_output_tokens': {
      toml: '98',
      wrong: ['0', '131_073', '"1"'],
      of: ({ service }) => service.primitive === 'model' && service.model.maxOutputTokens,
      is: 98,
      fallback: null,
    },
    'params.wires': {
      toml: '["chat", "messages"]',
      wrong: ['"messages"', '["mcp"]', '[1]'],
      of: ({ service }) => service.primitive === 'model' && service.model.wires,
      is: ['messages'],
      fallback: undefined,
    },
    'params.forward': {
      toml: '["top_n_sigma", "top_n_sigma"]',
      wrong: [
        '"some"',
        '3',
        '[3]',
        '["a b"]',
        '[""]',
        '["__proto__ "]',
        `[${Array.from({ length: 65 }, (_, n) => `"f${n}"`).join(',')}]`,
      ],
      of: ({ service }) => service.primitive === 'model' && service.model.forward,
      is: ['top_n_sigma'],
      fallback: undefined,
    },
    'params.strict_fields': {
      toml: 'true',
      wrong: ['"true"', '1'],
      of: ({ service }) => service.primitive === 'model' && service.model.strictFields,
      is: true,
      fallback: undefined,
    },
    'params.image_tokens_max': {
      toml: '26_000',
      wrong: ['0', '-1', '1.5', '1_000_001', '"1"'],
      of: ({ service }) => service.primitive === 'model' && service.model.imageTokensMax,
      is: 26_000,
      fallback: undefined,
    },
    'params.hidden_reasoning_max': {
      toml: '5000',
      wrong: ['-1', '1.5', '"1"'],
      of: ({ service }) => service.primitive === 'model' && service.model.hiddenReasoning,
      is: { max: 5_000, usual: 0 },
      fallback: undefined,
    },
    'params.hidden_reasoning_usual': {
      toml: '700',
      wrong: ['-1', '"1"', '701'],
      of: ({ service }) => service.primitive === 'model' && service.model.hiddenReasoning?.usual,
      is: 700,
      fallback: 0,
      with: { 'params.hidden_reasoning_max': '700' },
    },
    'params.api_base': base,
    'params.api_key': key,
    ...sdk,
  },
  tools: {
    ...names,
    'pricing.per_call': {
      toml: '"0.5"',
      wrong: ['-1', '1_001', '0.0000001'],
      of: ({ service }) => service.rates.call,
      is: 500_000_000_000n,
    },
    'pricing.per_second': {
      toml: '0.5',
      wrong: ['-1', '101', '0.00001'],
      of: ({ service }) => service.rates.second,
      is: 500_000_000_000n,
      fallback: undefined,
      with: { 'pricing.prompt': '1', 'pricing.per_call_max': '1' },
    },
    'pricing.prompt': {
      toml: '1',
      wrong: ['-1', '10_001', '0.0009'],
      of: ({ service }) => service.rates.prompt,
      is: 1_000_000n,
      fallback: undefined,
      with: { 'pricing.completion': '1', 'pricing.per_call_max': '1' },
    },
    'pricing.completion': {
      toml: '1',
      wrong: ['-1', '10_001', '0.0009'],
      of: ({ service }) => service.rates.completion,
      is: 1_000_000n,
      fallback: undefined,
      with: { 'pricing.prompt': '1', 'pricing.per_call_max': '1' },
    },
    'pricing.per_call_max': {
      toml: '"0.05"',
      wrong: ['-1', '1_001', '0.0000001', '0'],
      of: ({ service }) => service.primitive === 'tool' && service.priceCap,
      is: 50_000n,
      with: { 'pricing.prompt': '1' },
    },
    'pricing.tools': {
      toml: '{ search = 2, "a.b/c-d" = 0 }',
      wrong: ['3', '{ search = -1 }', '{ "a b" = 1 }', '{ constructor = 1 }', '{ __proto__ = 1 }'],
      of: ({ service }) => service.variants,
      is: { search: { call: 2_000_000_000_000n }, 'a.b/c-d': { call: 0n } },
      fallback: {},
    },
    endpoint: {
      toml: '"https://x.example/mcp/"',
      wrong: ['3', '"x.example"', '"https://k@x.example"', '"https://x.example/?key=1"'],
      of: ({ target }) => target.kind === 'http' && target.url,
      is: 'https://x.example/mcp',
      fallback: false,
      with: { command: null },
    },
    api_key: key,
    command: {
      toml: '"npx"',
      wrong: ['3', '""', '"a\\u0000b"'],
      of: (c) => ran(c)?.command,
      is: 'npx',
      fallback: undefined,
      with: { endpoint: null },
    },
    args: {
      ...command,
      toml: '["-y", "x"]',
      wrong: ['"x"', '[1]', '["std::env::KEY"]'],
      of: (c) => ran(c)?.args,
      is: ['-y', 'x'],
      fallback: [],
    },
    env: {
      ...command,
      toml: '{ TOKEN = "std::env::KEY", MODE = "" }',
      wrong: ['3', '{ TOKEN = 3 }', '{ "A B" = "x" }', '{ TOKEN = "std::env::ABSENT" }'],
      of: (c) => ran(c)?.env,
      is: { TOKEN: 'secret-1', MODE: '' },
      fallback: {},
    },
    cwd: {
      ...command,
      toml: '"work"',
      wrong: ['3', '""'],
      of: (c) => ran(c)?.cwd,
      is: '/etc/acme/work',
      fallback: null,
    },
    shared: { ...command, toml: 'true', wrong: ['1', '"true"'], of: (c) => ran(c)?.shared, is: true, fallback: false },
    sessions_max: {
      ...command,
      toml: '1000',
      wrong: ['0', '1001', '1.5', '"1"'],
      of: (c) => ran(c)?.sessionsMax,
      is: 1_000,
      fallback: 16,
    },
    session_idle_ms: {
      ...command,
      toml: '1000',
      wrong: ['999', '86400001', '"1000"'],
      of: (c) => ran(c)?.sessionIdleMs,
      is: 1_000,
      fallback: 300_000,
    },
    roots: { ...command, toml: 'true', wrong: ['1', '"true"'], of: (c) => ran(c)?.roots, is: true, fallback: false },
  },
  agents: {
    ...names,
    agent_card_path: {
      toml: '"/card.json"',
      wrong: ['3', '"card.json"', '"/../x"', '"/a b"', '"//x.example/card"'],
      of: ({ service }) => service.primitive === 'agent' && service.agent.cardPath,
      is: '/card.json',
      fallback: '/.well-known/agent-card.json',
    },
    rpc_path: {
      toml: '"/rpc"',
      wrong: ['3', '"rpc"', '"/../x"', '"//x.example"'],
      of: ({ service }) => service.primitive === 'agent' && service.agent.rpcPath,
      is: '/rpc',
      fallback: null,
    },
    'pricing.per_call': {
      toml: '1',
      wrong: ['-1', '1_001'],
      of: ({ service }) => service.rates.call,
      is: 1_000_000_000_000n,
      fallback: undefined,
      with: { 'pricing.prompt': '1', 'pricing.per_call_max': '1' },
    },
    'pricing.per_task': {
      toml: '1',
      wrong: ['-1', '1_001'],
      of: ({ service }) => service.primitive === 'agent' && service.agent.chargedPer,
      is: 'task',
      fallback: 'message',
      with: { 'pricing.per_call': null, 'pricing.prompt': '1', 'pricing.per_call_max': '1' },
    },
    'pricing.per_second': {
      toml: '1',
      wrong: ['-1', '0.00001'],
      of: ({ service }) => service.rates.second,
      is: 1_000_000_000_000n,
      fallback: undefined,
      with: { 'pricing.prompt': '1', 'pricing.per_call_max': '1' },
    },
    'pricing.prompt': {
      toml: '1',
      wrong: ['-1', '0.0000001'],
      of: ({ service }) => service.rates.prompt,
      is: 1_000_000n,
      fallback: undefined,
      with: { 'pricing.completion': '1', 'pricing.per_call_max': '1' },
    },
    'pricing.completion': {
      toml: '1',
      wrong: ['-1', '0.0000001'],
      of: ({ service }) => service.rates.completion,
      is: 1_000_000n,
      fallback: undefined,
      with: { 'pricing.prompt': '1', 'pricing.per_call_max': '1' },
    },
    'pricing.per_call_max': {
      toml: '1',
      wrong: ['-1', '1_001'],
      of: ({ service }) => service.primitive === 'agent' && service.priceCap,
      is: 1_000_000n,
      with: { 'pricing.prompt': '1' },
    },
    'pricing.nested_max': {
      toml: '1',
      wrong: ['-1', '1_001'],
      of: ({ service }) => service.primitive === 'agent' && service.agent.nestedMax,
      is: 1_000_000n,
      fallback: 0n,
    },
    endpoint: {
      toml: '"https://x.example/a/"',
      wrong: ['3', '"x.example"'],
      of: ({ target }) => target.kind === 'http' && target.url,
      is: 'https://x.example/a',
    },
    api_key: key,
  },
  images: IMAGE_CASES,
  videos: {
    ...names,
    ...declarations,
    supported_params: list('supportedParams', 'seed', 'Not this'),
    aspect_ratios: list('aspectRatios', '9:16', '0:9'),
    quotes: {
      toml: 'false',
      wrong: ['"no"', '0'],
      of: ({ service }) => 'media' in service && service.media.unquoted,
      is: true,
      fallback: undefined,
    },
    durations: list('durations', '5s', '5'),
    'params.inputs': {
      toml: '"files"',
      wrong: ['"bytes"', '3'],
      of: ({ service }) => service.primitive === 'video' && service.media.filesOnly,
      is: true,
      fallback: undefined,
    },
    'pricing.per_second': {
      toml: '{ 4k = 0.5 }',
      wrong: ['3', '{ 4k = -1 }', '{ 4k = 101 }', '{ 8k = 1 }', '{ }'],
      of: ({ service }) => service.variants['4k'],
      is: { second: 500_000_000_000n },
    },
    'pricing.base': {
      toml: '1',
      wrong: ['-1', '1_001'],
      of: ({ service }) => service.rates.call,
      is: 1_000_000_000_000n,
      fallback: undefined,
    },
    'pricing.audio_multiplier': {
      toml: '1.5',
      wrong: ['0.9', '10.1', '-2', '"loud"', 'nan', 'true', '1.0000001'],
      of: ({ service }) => service.variants['720p+audio'],
      is: { second: 150_000_000_000n },
      fallback: { second: 100_000_000_000n },
    },
    'params.model': model,
    'params.api_base': base,
    'params.api_key': key,
    ...sdk,
  },
};

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

const reading = (): Reading => ({ file: null, lineOf: () => null, env: {}, problems: [] });

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

function offersOf(document: Table): readonly Service[] {
  const read = reading();
  const services = readOffers(document, { max: 1, oneProvider: true }, read);
  expect(read.problems).toEqual([]);
  return services;
}

const all = Object.entries(CASES).flatMap(([table, cases]) =>
  Object.entries(cases).map(([option, one]) => [table as BlockTable, option, one] as const),
);
const refused = confinesPackages() ? '-' : 'params.sdk'; // See test/ai-sdk/refused-on-old-node.test.ts.

test.each(Object.entries(CASES))('every option of [[%s]] has a case in CASES, above', (table, cases) => {
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

describe.each(all.filter(([, option]) => !option.startsWith(refused)))('%s.%s', (table, option, one) => {
  const written = (value: string | null) => blockWith(table, option, one, value);

  test('is set by the file', () => {
    expect(one.of(load(written(one.toml)))).toEqual(one.is);
  });

  test('has its default without it, or is missed', () => {
    const absent =
      option === 'endpoint' && table === 'tools' ? block(table, { endpoint: null, command: '"x"' }) : written(null);
    const usable = option === 'command' || option === 'params.sdk' ? block(table) : absent;
    if ('fallback' in one) expect(one.of(load(usable))).toEqual(one.fallback);
    else expect(problemsOf(usable)).toMatchObject([{ key: `${table}[0].${option}`, wrong: 'is missing' }]);
  });

  test.each(one.wrong)('refuses %s with line and key', (wrong) => {
    const problems = problemsOf(written(wrong));
    expect(problems.length).toBeGreaterThan(0);
    const [problem] = problems;
    expect(problem!.line).toBeGreaterThan(3);
    expect(problem!.key.startsWith(`${table}[0].${option}`)).toBe(true);
    expect(problem!.right).not.toBe('');
  });
});
