import { CliError } from '../terminal.ts';
import { modelOfLineItem, requireUsd, type Vendor } from './csv-formats.ts';
import { count, dayOf, decimal, NOTHING_TOLD, type Place, type VendorRow } from './vendor-row.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

/** A format of JSON answers of a vendor. Its members are its version. */
interface JsonFormat {
  readonly vendor: Vendor;
  readonly name: string;
  /** Members without which a result is not of this format. */
  readonly members: readonly string[];
  /** The value of the member `object`, where results have it. */
  readonly object?: string;
  /** The member of a bucket that has its beginning. null: results stand alone. */
  readonly bucket: 'start_time' | 'starting_at' | null;
  row(result: JsonObject, day: string, place: Place): VendorRow;
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const text = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

function modelOf(result: JsonObject, place: Place, advice: string): string {
  const model = text(result['model']);
  if (model === null) throw new CliError(`${place}: the model is not named. ${advice}`);
  return model;
}

const optional = (result: JsonObject, name: string, place: Place): number =>
  result[name] === undefined || result[name] === null ? 0 : count(result[name], name, place);

const GROUP_OPENAI = 'Ask for it with group_by=model';

/** https://platform.openai.com/docs/api-reference/usage/completions_object; `input_tokens` has those of a cache. */
const OPENAI_COMPLETIONS: JsonFormat = {
  vendor: 'openai',
  name: 'organization/usage/completions, JSON',
  object: 'organization.usage.completions.result',
  members: ['input_tokens', 'output_tokens', 'num_model_requests'],
  bucket: 'start_time',
  row: (result, day, place) => ({
    day,
    model: modelOf(result, place, GROUP_OPENAI),
    requests: count(result['num_model_requests'], 'num_model_requests', place),
    prompt: count(result['input_tokens'], 'input_tokens', place),
    completion: count(result['output_tokens'], 'output_tokens', place),
    cached: optional(result, 'input_cached_tokens', place),
    reasoning: null,
    cost: null,
  }),
};

/** https://platform.openai.com/docs/api-reference/usage/embeddings_object */
const OPENAI_EMBEDDINGS: JsonFormat = {
  vendor: 'openai',
  name: 'organization/usage/embeddings, JSON',
  object: 'organization.usage.embeddings.result',
  members: ['input_tokens', 'num_model_requests'],
  bucket: 'start_time',
  row: (result, day, place) => ({
    ...NOTHING_TOLD,
    day,
    model: modelOf(result, place, GROUP_OPENAI),
    requests: count(result['num_model_requests'], 'num_model_requests', place),
    prompt: count(result['input_tokens'], 'input_tokens', place),
    completion: 0,
  }),
};

/** https://platform.openai.com/docs/api-reference/usage/costs_object */
const OPENAI_COSTS: JsonFormat = {
  vendor: 'openai',
  name: 'organization/costs, JSON',
  object: 'organization.costs.result',
  members: ['amount'],
  bucket: 'start_time',
  row(result, day, place) {
    const amount = isObject(result['amount']) ? result['amount'] : {};
    requireUsd(amount['currency'], place);
    const item = text(result['line_item']);
    return {
      ...NOTHING_TOLD,
      day,
      model: item === null ? null : modelOfLineItem(item),
      // The API had numbers, and has texts since; both are decimal.
      cost: decimal(String(amount['value']), 12, 'amount.value', place),
    };
  },
};

/** https://platform.claude.com/docs/en/api/admin-api/usage-cost/get-messages-usage-report */
const ANTHROPIC_MESSAGES: JsonFormat = {
  vendor: 'anthropic',
  name: 'usage_report/messages, JSON',
  members: ['uncached_input_tokens', 'cache_creation', 'cache_read_input_tokens', 'output_tokens'],
  bucket: 'starting_at',
  row(result, day, place) {
    const written = isObject(result['cache_creation']) ? result['cache_creation'] : {};
    const cached = count(result['cache_read_input_tokens'], 'cache_read_input_tokens', place);
    return {
      ...NOTHING_TOLD,
      day,
      model: modelOf(result, place, 'Ask for it with group_by[]=model'),
      prompt:
        count(result['uncached_input_tokens'], 'uncached_input_tokens', place) +
        optional(written, 'ephemeral_5m_input_tokens', place) +
        optional(written, 'ephemeral_1h_input_tokens', place) +
        cached,
      completion: count(result['output_tokens'], 'output_tokens', place),
      cached,
    };
  },
};

/** https://platform.claude.com/docs/en/api/admin/cost_report: `amount` is a decimal text of cents. */
const ANTHROPIC_COSTS: JsonFormat = {
  vendor: 'anthropic',
  name: 'cost_report, JSON',
  members: ['amount', 'currency', 'description', 'cost_type'],
  bucket: 'starting_at',
  row(result, day, place) {
    requireUsd(result['currency'], place);
    const { amount, description, cost_type: type, model } = result;
    return {
      ...NOTHING_TOLD,
      day,
      // Without group_by[]=description there is one amount for all; searches have no model.
      model: text(model) ?? text(description) ?? text(type),
      cost: decimal(typeof amount === 'string' ? amount : JSON.stringify(amount ?? null), 10, 'amount', place),
    };
  },
};

/** https://openrouter.ai/docs/api/api-reference/analytics/get-user-activity */
const OPENROUTER_ACTIVITY: JsonFormat = {
  vendor: 'openrouter',
  name: 'activity, JSON',
  members: ['date', 'model', 'usage', 'requests', 'prompt_tokens', 'completion_tokens', 'reasoning_tokens'],
  bucket: null,
  row: (result, day, place) => ({
    day,
    model: modelOf(result, place, 'Each row of /activity has one'),
    requests: count(result['requests'], 'requests', place),
    prompt: count(result['prompt_tokens'], 'prompt_tokens', place),
    completion: count(result['completion_tokens'], 'completion_tokens', place),
    cached: null,
    reasoning: count(result['reasoning_tokens'], 'reasoning_tokens', place),
    cost: decimal(String(result['usage']), 12, 'usage', place),
  }),
};

export const JSON_FORMATS: readonly JsonFormat[] = [
  OPENAI_COMPLETIONS,
  OPENAI_EMBEDDINGS,
  OPENAI_COSTS,
  ANTHROPIC_MESSAGES,
  ANTHROPIC_COSTS,
  OPENROUTER_ACTIVITY,
];

/** The results of the pages of an answer, each with its day where its bucket tells it. */
export function* resultsOf(
  pages: readonly JsonObject[],
  file: string,
): Generator<{ readonly result: JsonObject; readonly bucket: JsonObject | null; readonly place: Place }> {
  for (const [index, page] of pages.entries()) {
    if (!Array.isArray(page['data'])) throw new CliError(`${file}: page ${index + 1} has no list "data"`);
    for (const [at, entry] of (page['data'] as readonly unknown[]).entries()) {
      const place = `${file}, page ${index + 1}, data[${at}]`;
      if (!isObject(entry)) throw new CliError(`${place} is no object`);
      if (!Array.isArray(entry['results'])) yield { result: entry, bucket: null, place };
      else
        for (const [each, result] of (entry['results'] as readonly unknown[]).entries()) {
          if (!isObject(result)) throw new CliError(`${place}.results[${each}] is no object`);
          yield { result, bucket: entry, place: `${place}.results[${each}]` };
        }
    }
  }
}

export const dayOfResult = (
  { bucket: member }: JsonFormat,
  { result, bucket, place }: { readonly result: JsonObject; readonly bucket: JsonObject | null; readonly place: Place },
): string => (member === null ? dayOf(result['date'], 'date', place) : dayOf((bucket ?? {})[member], member, place));
