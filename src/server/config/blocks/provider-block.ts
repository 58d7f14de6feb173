import {
  KNOWN_PROVIDER_NAMES,
  KNOWN_PROVIDERS,
  type KnownProvider,
  type KnownProviderName,
  type ListedProvider,
} from '../known-providers.ts';
import { claimedNameFault, providerNameFault, serviceNameFault } from '../names.ts';
import { option, optionalText, textList, type Option } from '../option.ts';
import { show, WrongValue } from '../problem.ts';
import {
  complain,
  isTable,
  lookup,
  lookupSecret,
  readTable,
  REFERENCE,
  valuesOf,
  type ConfigReading,
} from '../reading.ts';
import type { Table } from '../toml.ts';
import { apiOrSdkOptions } from './sdk-options.ts';
import { bearerKey, readUrl } from './block.ts';
import { MODEL_BLOCK } from './model-block.ts';

const MODELS_MAX = 1_000;
const NAME = /^[A-Za-z0-9][\w.-]{0,63}$/;
const PATTERN_RIGHT = 'a list of names as the provider has them, in which * stands for any text: ["gpt-5*"]';
const MARKUP_RIGHT = 'a percentage from "0%" to "1000%", with at most two decimals, such as "10%"';

const { 'params.sdk_settings': SDK_SETTINGS } = apiOrSdkOptions('');

export const PROVIDER_OPTIONS = {
  use: option<KnownProviderName>({
    takes: `one of ${KNOWN_PROVIDER_NAMES.map((name) => `\`${name}\``).join(', ')}`,
    meaning: 'The provider: one of the [known providers](reference/known-providers.md).',
    read: (value) => {
      const use = KNOWN_PROVIDER_NAMES.find((name) => name === value);
      if (use !== undefined) return use;
      throw new WrongValue(`is ${show(value)}`, `one of ${KNOWN_PROVIDER_NAMES.join(', ')}; others by [[models]]`);
    },
  }),
  api_key: {
    ...bearerKey('Key at the provider. The file only names the variable that has it.'),
    takes: '`std::env::NAME`',
    defaultText: "the provider's usual variable, such as `OPENAI_API_KEY`",
    onlyReference: true as const,
  },
  api_base: option<string | null>({
    takes: 'an http:// or https:// URL',
    meaning: 'Base address of its API, up to but without `/chat/completions`.',
    optional: { text: 'the usual one of the provider; required for `azure`', fallback: null },
    read: (value) => {
      const { origin, path } = readUrl(
        value,
        'the base address of the API, such as https://api.example.com/v1',
        'api_key',
      );
      return `${origin}${path || '/v1'}`;
    },
  }),
  prefix: optionalText({
    takes: '1 to 64 characters of A-Z a-z 0-9 . _ -',
    meaning: 'Beginning of the names of its models: `openai` gives `openai/gpt-4.1-mini`.',
    absent: 'the value of `use`',
    fault: (value) => (NAME.test(value) ? serviceNameFault(value) : 'is not written like openai'),
  }),
  provider_name: optionalText({
    takes: '1 to 64 characters of A-Z a-z 0-9 space . _ -',
    meaning: 'Name of the provider. Two blocks with the same `prefix` and different names compete for the same calls.',
    absent: 'the `prefix`',
    fault: providerNameFault,
  }),
  markup: option<number>({
    takes: 'a percentage, "0%" to "1000%"',
    meaning: 'What is added to each list price. Each rate is rounded up to a micro-USD.',
    optional: { text: '"0%"', fallback: 0 },
    read: (value) => {
      const [, whole, part = ''] = (typeof value === 'string' && /^(\d{1,4})(?:\.(\d{1,2}))?%$/.exec(value)) || [];
      const bps = whole === undefined ? NaN : Number(whole) * 100 + Number(part.padEnd(2, '0'));
      if (!(bps <= 100_000)) throw new WrongValue(`is ${show(value)}`, MARKUP_RIGHT);
      return bps;
    },
  }),
  only: patterns('Models that are offered, by their names at the provider.', 'all'),
  except: patterns('Models that are not offered.', 'none'),
  pricing: table(
    'The prices of models that have no list price, with the keys of `[models.pricing]`. `{ prompt = 0, completion = 0 }` offers them for free.',
  ),
  models: table(
    'Settings of single models, by their names at the provider: the keys of `[[models]]` but those of its address, and `priced_as`, the name of the model whose list price it has.',
  ),
  sdk_settings: {
    ...SDK_SETTINGS,
    meaning:
      'Settings of the package, for providers that are called by [one](run/ai-sdk.md), such as `region` of `bedrock`.',
  },
};

function patterns(meaning: string, absent: string): Option<readonly string[]> {
  const { read } = textList({
    takes: PATTERN_RIGHT,
    meaning,
    max: MODELS_MAX,
    fault: (one) => (/^[!-~]{1,256}$/.test(one) ? null : 'is not a name of 1 to 256 printable characters'),
  });
  return option<readonly string[]>({
    takes: 'list of names, in which `*` stands for any text',
    meaning,
    optional: { text: absent, fallback: [] },
    read: (value) => {
      if (!Array.isArray(value)) throw new WrongValue(`is ${show(value)}`, PATTERN_RIGHT);
      return read(value);
    },
  });
}

function table(meaning: string): Option<Table | null> {
  return option<Table | null>({
    takes: 'table',
    meaning,
    optional: { text: 'none', fallback: null },
    read: (value) => {
      if (!isTable(value)) throw new WrongValue(`is ${show(value)}`, 'a table');
      return value;
    },
  });
}

/**
 * All valid `[[providers]]` blocks of a file. `oneProvider`: the file is that of a proxy, which may not take names by
 * which others are called.
 */
export function readProviders(
  file: Table,
  { oneProvider }: { readonly oneProvider: boolean },
  reading: ConfigReading,
): readonly ListedProvider[] {
  const blocks = file['providers'];
  if (blocks === undefined) return [];
  if (!Array.isArray(blocks)) {
    complain(reading, 'providers', `is ${show(blocks)}`, 'a list of blocks: one [[providers]] for each');
    return [];
  }
  const read = (blocks as readonly unknown[]).flatMap((block, index) => {
    const path = `providers[${index}]`;
    if (isTable(block)) return readProvider(block, path, reading) ?? [];
    complain(reading, path, `is ${show(block)}`, 'a [[providers]] block');
    return [];
  });
  const names = new Map<string, ListedProvider>();
  for (const one of read) {
    const claimed = oneProvider ? claimedNameFault('models', `${one.prefix}/`) : null;
    if (claimed !== null)
      complain(
        reading,
        `${one.path}.prefix`,
        `gives names of which each ${claimed}`,
        'another prefix, such as your own name',
      );
    const name = `${one.prefix}\n${one.providerName ?? one.prefix}`.toLowerCase();
    const other = names.get(name);
    if (other !== undefined)
      complain(
        reading,
        `${one.path}.use`,
        `has the names of ${other.path}: ${one.prefix}/… of the provider ${one.providerName ?? one.prefix}`,
        'another prefix, or another provider_name',
      );
    names.set(name, one);
  }
  return read;
}

function readProvider(block: Table, path: string, reading: ConfigReading): ListedProvider | null {
  const values = valuesOf(readTable(block, path, PROVIDER_OPTIONS, reading), PROVIDER_OPTIONS);
  if (values === null) return null;
  const { use, api_key: keyValue, api_base: address, models, pricing, only, sdk_settings: sdkSettings } = values;
  const known = KNOWN_PROVIDERS[use];
  const say = (key: string, wrong: string, right: string) => complain(reading, `${path}.${key}`, wrong, right);

  const apiKey = keyValue ?? usualKey(known, path, reading);
  if (apiKey === null && known.keyVariables.length > 0 && block['api_key'] === undefined && !reading.placeOnly)
    say(
      'api_key',
      `is missing, and the environment has no ${known.keyVariables.join(' and no ')}`,
      `set ${known.keyVariables[0]}, or name another variable: api_key = "std::env::NAME"`,
    );
  // A gateway that sells its own models as those of a provider would call itself without end.
  if (keyValue === null && apiKey?.startsWith('svc-sk-'))
    say(
      'api_key',
      `is the key of a tollgate gateway, from ${known.keyVariables[0]}`,
      `a key of ${known.name}, or a [[models]] block`,
    );

  const url = address ?? usualBase(known, path, reading);
  if (known.sdk !== undefined && address !== null)
    say(
      'api_base',
      `is given, but ${known.name} is called by the package ${known.sdk}`,
      'sdk_settings, or leave it out',
    );
  if (known.sdk === undefined && url === '')
    say('api_base', 'is missing', `the address of your ${known.name}, such as ${EXAMPLES[use]}`);
  if (known.sdk === undefined && Object.keys(sdkSettings).length > 0)
    say('sdk_settings', `is given, but ${known.name} is called by its address`, 'leave it out');
  if (known.lists === null && only.length === 0)
    say(
      'only',
      `is missing: ${known.name} does not tell which models its key may call`,
      `their names there, such as ${EXAMPLES_OF_MODELS[use]}`,
    );
  if (known.lists === null && only.some((one) => one.includes('*')))
    say('only', `has a *, but ${known.name} does not tell which models its key may call`, 'whole names');

  checkOverride(pricing === null ? {} : { pricing }, path, reading);
  const settings = Object.entries(models ?? {}).flatMap(([name, one]) => {
    if (!isTable(one)) {
      say(`models.${name}`, `is ${show(one)}`, 'a table with settings of the model');
      return [];
    }
    const { priced_as: pricedAs, ...rest } = one;
    if (pricedAs !== undefined && (typeof pricedAs !== 'string' || pricedAs === ''))
      say(`models.${name}.priced_as`, `is ${show(pricedAs)}`, 'the name of a model in the list of prices');
    checkOverride(rest, `${path}.models.${name}`, reading);
    return [[name, one] as const];
  });
  return {
    path,
    use,
    prefix: values.prefix ?? use,
    providerName: values.provider_name,
    url: known.sdk === undefined ? url : '',
    apiKey,
    keyVariable: keyValue === null ? usualVariable(known, reading) : String(block['api_key']).slice(REFERENCE.length),
    markupBps: values.markup,
    only,
    except: values.except,
    pricing,
    models: Object.fromEntries(settings),
    sdkSettings,
  };
}

const EXAMPLES: Readonly<Record<string, string>> = { azure: 'https://acme.openai.azure.com/openai/v1' };
const EXAMPLES_OF_MODELS: Readonly<Record<string, string>> = {
  azure: 'only = ["gpt-4.1-mini"]',
  bedrock: 'only = ["eu.anthropic.claude-sonnet-4-5-20250929-v1:0"]',
};

/** The first of the provider's usual variables that is set. */
const usualVariable = ({ keyVariables }: KnownProvider, { env }: ConfigReading): string | null =>
  keyVariables.find((one) => lookup(env, one) !== undefined || lookup(env, `${one}_FILE`) !== undefined) ?? null;

function usualKey(known: KnownProvider, path: string, reading: ConfigReading): string | null {
  const name = usualVariable(known, reading);
  return name === null ? null : (readVariable(PROVIDER_OPTIONS.api_key, name, `${path}.api_key`, reading) ?? null);
}

/** The value of a variable that is not named in the file. undefined if it is wrong, which adds a problem. */
function readVariable<T>({ read }: Option<T>, name: string, key: string, reading: ConfigReading): T | undefined {
  try {
    return read(lookupSecret(reading.env, name));
  } catch (error) {
    if (!(error instanceof WrongValue)) throw error;
    complain(reading, key, `from the variable ${name} ${error.message}`, error.right);
    return undefined;
  }
}

/** The address from the provider's usual variable, else its usual address. '' if it has neither. */
function usualBase({ base, baseVariable }: KnownProvider, path: string, reading: ConfigReading): string {
  if (baseVariable === undefined || lookup(reading.env, baseVariable) === undefined) return base ?? '';
  return readVariable(PROVIDER_OPTIONS.api_base, baseVariable, `${path}.api_base`, reading) ?? base ?? '';
}

/** The keys of `[[models]]` that a single model of a provider may have. Its address and its key are the provider's. */
const OVERRIDES = {
  ...MODEL_BLOCK.offer,
  'params.own_keys': MODEL_BLOCK.target['params.own_keys']!,
  'params.batches': MODEL_BLOCK.target['params.batches']!,
  'params.head_timeout_ms': MODEL_BLOCK.target['params.head_timeout_ms']!,
  'params.first_event_timeout_ms': MODEL_BLOCK.target['params.first_event_timeout_ms']!,
};

/** A right block, for a check of some keys of it. */
const SAMPLE: Table = { name: 'a/b', display_name: 'a/b', provider_name: 'a', pricing: { prompt: 1, completion: 1 } };

/** Complains about keys that a model of this provider could not have, before its models are known. */
function checkOverride(override: Table, path: string, reading: ConfigReading): void {
  const { params = {} } = override;
  const complete = { ...SAMPLE, ...override, params: isTable(params) ? { model: 'b', ...params } : params };
  const read = readTable(complete, path, OVERRIDES, reading);
  const offer = valuesOf(read, MODEL_BLOCK.offer);
  if (offer !== null)
    MODEL_BLOCK.toService(offer, (key, wrong, right) => complain(reading, `${path}.${key}`, wrong, right));
}
