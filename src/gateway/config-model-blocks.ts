import { MODEL_OPTIONS, toServiceConfig, type ModelKey, type ModelValues } from './config-models.ts';
import type { Option } from './config-option.ts';
import { show } from './config-problem.ts';
import { complain, isTable, readValue, unknownKey, type Reading, type Table } from './config-reading.ts';
import type { ServiceConfig } from './config.ts';

const MODELS_MAX = 10_000;

const KEYS = Object.keys(MODEL_OPTIONS) as ModelKey[];
/** Keys and tables directly in a block. */
const TOP = [...new Set(KEYS.map((key) => key.split('.')[0]!))];

/** All `[[models]]` blocks that have no problems, in their order. */
export function readModels(value: unknown, reading: Reading): readonly ServiceConfig[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) {
    complain(reading, 'models', `is ${show(value)}`, 'one [[models]] block for each model');
    return [];
  }
  if (value.length > MODELS_MAX) {
    complain(reading, 'models', `has ${value.length} blocks`, `at most ${MODELS_MAX}`);
    return [];
  }
  const services: ServiceConfig[] = [];
  const offered = new Map<string, number>();
  const spelled = new Map<string, string>();
  for (const [index, block] of (value as readonly unknown[]).entries()) {
    const path = `models[${index}]`;
    const service = isTable(block) ? readModel(block, path, reading) : null;
    if (!isTable(block)) complain(reading, path, `is ${show(block)}`, 'a [[models]] block');
    if (!service) continue;
    const first = offered.get(`${service.providerName}\n${service.name}`);
    const spelling = spelled.get(service.providerName.toLowerCase()) ?? service.providerName;
    if (first !== undefined) {
      const where = reading.lineOf(`models[${first}].name`);
      complain(
        reading,
        `${path}.name`,
        `${show(service.name)} of provider ${show(service.providerName)} is there twice${where === null ? '' : `, first on line ${where}`}`,
        'another name, or another provider_name',
      );
    } else if (spelling !== service.providerName) {
      complain(reading, `${path}.provider_name`, `${show(service.providerName)} and ${show(spelling)} differ in case only`, 'one spelling');
    } else {
      offered.set(`${service.providerName}\n${service.name}`, index);
      spelled.set(service.providerName.toLowerCase(), service.providerName);
      services.push(service);
    }
  }
  return services;
}

/** One block, or null when it has problems. */
function readModel(block: Table, path: string, reading: Reading): ServiceConfig | null {
  const before = reading.problems.length;
  const written = collect(block, path, reading);
  const values: Partial<Record<ModelKey, unknown>> = {};
  for (const key of KEYS) {
    const option: Option<unknown> = MODEL_OPTIONS[key];
    if (written.has(key)) values[key] = readValue(option, written.get(key), `${path}.${key}`, reading);
    else if (option.defaultText === null) complain(reading, `${path}.${key}`, 'is missing', option.takes);
    else values[key] = option.fallback;
  }
  if (reading.problems.length > before) return null;
  const model = values as ModelValues;
  if (model.max_output_tokens !== null && model.max_output_tokens > model.context_length) {
    complain(reading, `${path}.max_output_tokens`, `is more than context_length, ${model.context_length}`, 'at most context_length');
    return null;
  }
  return toServiceConfig(model);
}

/** What a block writes for the known keys, its tables flattened; what is not known becomes a problem. */
function collect(block: Table, path: string, reading: Reading): Map<ModelKey, unknown> {
  const written = new Map<ModelKey, unknown>();
  for (const [key, value] of Object.entries(block)) {
    const inner = KEYS.filter((known) => known.startsWith(`${key}.`)).map((known) => known.slice(key.length + 1));
    if (inner.length === 0) {
      if (TOP.includes(key)) written.set(key as ModelKey, value);
      else unknownKey(`${path}.${key}`, key, TOP, reading, KEYS);
    } else if (!isTable(value)) complain(reading, `${path}.${key}`, `is ${show(value)}`, `a table: [models.${key}]`);
    else {
      for (const [nested, content] of Object.entries(value)) {
        if (inner.includes(nested)) written.set(`${key}.${nested}` as ModelKey, content);
        else unknownKey(`${path}.${key}.${nested}`, nested, inner, reading, KEYS);
      }
    }
  }
  return written;
}
