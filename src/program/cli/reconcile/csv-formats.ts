import { CliError } from '../terminal.ts';
import type { CsvTable } from './csv-text.ts';
import { count, dayOf, decimal, NOTHING_TOLD, type Place, type VendorRow } from './vendor-row.ts';

export type Vendor = 'openai' | 'anthropic' | 'openrouter' | 'csv';

type Cells = ReadonlyMap<string, string>;

/** A format of CSV exports. Its columns are its version. */
interface CsvFormat {
  readonly vendor: Vendor;
  readonly name: string;
  /** Columns without which a file is not of this format. */
  readonly columns: readonly string[];
  /** Columns that are known, and needed for nothing or only if they are there. */
  readonly others: readonly string[];
  /** null for a line without use, such as that of a day without calls. */
  row(cells: Cells, place: Place): VendorRow | null;
}

const cell = (cells: Cells, name: string): string => cells.get(name)?.trim() ?? '';
/** An empty cell is no use. */
const tokens = (cells: Cells, name: string, place: Place): number =>
  cell(cells, name) === '' ? 0 : count(cell(cells, name), name, place);
const usd = (cells: Cells, name: string, place: Place): bigint => decimal(cell(cells, name), 12, name, place);
const optional = (cells: Cells, name: string, place: Place): number | null =>
  cell(cells, name) === '' ? null : count(cell(cells, name), name, place);

/** A line item of token costs: `gpt-4.1-mini-2025-04-14, cached input`. Others are named as they are. */
export const modelOfLineItem = (item: string): string =>
  item.replace(/, (?:cached )?(?:audio |image |text )?(?:input|output)$/i, '');

/**
 * OpenAI's usage page (https://platform.openai.com/usage, Export): the members of its Usage API as columns
 * (https://platform.openai.com/docs/api-reference/usage/completions_object), with each time also as ISO text.
 */
const OPENAI_USAGE: CsvFormat = {
  vendor: 'openai',
  name: 'usage of completions, CSV',
  columns: ['start_time_iso', 'model', 'num_model_requests', 'input_tokens', 'output_tokens', 'input_cached_tokens'],
  others: [
    'input_uncached_tokens',
    'input_text_tokens',
    'output_text_tokens',
    'input_cached_text_tokens',
    'input_audio_tokens',
    'input_cached_audio_tokens',
    'output_audio_tokens',
    'input_image_tokens',
    'input_cached_image_tokens',
    'output_image_tokens',
  ],
  row(cells, place) {
    if (cell(cells, 'num_model_requests') === '') return null;
    return {
      day: dayOf(cell(cells, 'start_time_iso'), 'start_time_iso', place),
      model: nonEmptyCell(cells, 'model', place, 'Export it with the models apart'),
      requests: tokens(cells, 'num_model_requests', place),
      prompt: tokens(cells, 'input_tokens', place),
      completion: tokens(cells, 'output_tokens', place),
      cached: tokens(cells, 'input_cached_tokens', place),
      reasoning: null,
      cost: null,
    };
  },
};

/**
 * OpenAI's costs (https://platform.openai.com/docs/api-reference/usage/costs_object), as the same page exports them.
 */
const OPENAI_COSTS: CsvFormat = {
  vendor: 'openai',
  name: 'costs, CSV',
  columns: ['start_time_iso', 'amount_value', 'amount_currency', 'line_item'],
  others: [],
  row(cells, place) {
    if (cell(cells, 'amount_value') === '') return null;
    requireUsd(cell(cells, 'amount_currency'), place);
    const item = cell(cells, 'line_item');
    return {
      ...NOTHING_TOLD,
      day: dayOf(cell(cells, 'start_time_iso'), 'start_time_iso', place),
      model: item === '' ? null : modelOfLineItem(item),
      cost: usd(cells, 'amount_value', place),
    };
  },
};

/** The usage page of Anthropic's console (https://platform.claude.com/usage, Export). */
const ANTHROPIC_USAGE: CsvFormat = {
  vendor: 'anthropic',
  name: 'usage of the console, CSV',
  columns: [
    'usage_date_utc',
    'model_version',
    'usage_input_tokens_no_cache',
    'usage_input_tokens_cache_write_5m',
    'usage_input_tokens_cache_write_1h',
    'usage_input_tokens_cache_read',
    'usage_output_tokens',
  ],
  others: ['usage_type'],
  row(cells, place) {
    const tokensOf = (name: string) => tokens(cells, name, place);
    const cached = tokensOf('usage_input_tokens_cache_read');
    return {
      ...NOTHING_TOLD,
      day: dayOf(cell(cells, 'usage_date_utc'), 'usage_date_utc', place),
      model: nonEmptyCell(cells, 'model_version', place, 'Export it with the models apart'),
      prompt:
        tokensOf('usage_input_tokens_no_cache') +
        tokensOf('usage_input_tokens_cache_write_5m') +
        tokensOf('usage_input_tokens_cache_write_1h') +
        cached,
      completion: tokensOf('usage_output_tokens'),
      cached,
    };
  },
};

/** The cost page of the same console. Its models have their names for people: "Claude Haiku 4.5". */
const ANTHROPIC_COSTS: CsvFormat = {
  vendor: 'anthropic',
  name: 'costs of the console, CSV',
  columns: ['usage_date_utc', 'model', 'token_type', 'cost_usd'],
  others: ['usage_type', 'list_price_usd', 'cost_type'],
  row(cells, place) {
    const model = cell(cells, 'model') || cell(cells, 'cost_type') || cell(cells, 'usage_type');
    return {
      ...NOTHING_TOLD,
      day: dayOf(cell(cells, 'usage_date_utc'), 'usage_date_utc', place),
      model: model === '' ? null : model,
      cost: usd(cells, 'cost_usd', place),
    };
  },
};

/**
 * OpenRouter's log of generations (https://openrouter.ai/activity, Export), one line a call. `byok_usage_inference` is
 * the bill of another vendor.
 */
const OPENROUTER_GENERATIONS: CsvFormat = {
  vendor: 'openrouter',
  name: 'generations, CSV',
  columns: ['generation_id', 'created_at', 'cost_total', 'tokens_prompt', 'tokens_completion', 'model_permaslug'],
  others: [
    'tokens_reasoning',
    'tokens_cached',
    'cost_web_search',
    'cost_cache',
    'cost_file_processing',
    'time_to_first_token_ms',
    'byok_usage_inference',
  ],
  row: (cells, place) => ({
    day: dayOf(cell(cells, 'created_at'), 'created_at', place),
    model: nonEmptyCell(cells, 'model_permaslug', place, 'Each generation has one'),
    requests: 1,
    prompt: tokens(cells, 'tokens_prompt', place),
    completion: tokens(cells, 'tokens_completion', place),
    cached: optional(cells, 'tokens_cached', place),
    reasoning: optional(cells, 'tokens_reasoning', place),
    cost: usd(cells, 'cost_total', place),
  }),
};

/** Our own, for vendors without a known export. docs/run/reconcile.md has it. */
const OWN: CsvFormat = {
  vendor: 'csv',
  name: 'day and model, CSV',
  columns: ['day', 'model'],
  others: ['requests', 'prompt_tokens', 'completion_tokens', 'cached_tokens', 'reasoning_tokens', 'cost_usd'],
  row: (cells, place) => ({
    day: dayOf(cell(cells, 'day'), 'day', place),
    model: cell(cells, 'model') || null,
    requests: optional(cells, 'requests', place),
    prompt: optional(cells, 'prompt_tokens', place),
    completion: optional(cells, 'completion_tokens', place),
    cached: optional(cells, 'cached_tokens', place),
    reasoning: optional(cells, 'reasoning_tokens', place),
    cost: cell(cells, 'cost_usd') === '' ? null : usd(cells, 'cost_usd', place),
  }),
};

export const CSV_FORMATS: readonly CsvFormat[] = [
  OPENAI_USAGE,
  OPENAI_COSTS,
  ANTHROPIC_USAGE,
  ANTHROPIC_COSTS,
  OPENROUTER_GENERATIONS,
  OWN,
];

function nonEmptyCell(cells: Cells, column: string, place: Place, advice: string): string {
  const name = cell(cells, column);
  if (name === '') throw new CliError(`${place}: ${column} is empty. ${advice}`);
  return name;
}

export function requireUsd(currency: unknown, place: Place): void {
  if (typeof currency === 'string' && currency.toLowerCase() === 'usd') return;
  throw new CliError(`${place}: the currency is ${JSON.stringify(currency)}. Only amounts in USD can be compared`);
}

/** A name of a column that may have a part of the bill. A format that lacks it would be added up wrongly. */
const COUNTS = /token|cost|amount|usage|request/i;

/** Columns of a format that count something and are not known. */
export const unknownColumns = ({ columns, others }: CsvFormat, table: CsvTable): readonly string[] =>
  table.columns.filter((name) => COUNTS.test(name) && !columns.includes(name) && !others.includes(name));
