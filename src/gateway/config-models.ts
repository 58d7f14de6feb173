import { MoneyError, parseRates, parseUsd, type Meter, type MicroUsd, type Rates } from '#billing';
import { SERVICE_NAME_MAX, displayNameFault, providerNameFault, serviceNameFault } from './catalog/names.ts';
import type { ServiceConfig } from './config.ts';
import { show, WrongValue } from './config-problem.ts';
import { urlFault, whole, type Option, type ValueOf } from './config-option.ts';

const MODALITIES = ['text', 'image', 'audio', 'video', 'file', 'embedding'] as const;

interface Described<T> {
  readonly takes: string;
  readonly meaning: string;
  readonly secret?: boolean;
  /** Absent: the key must be given. */
  readonly optional?: { readonly text: string; readonly fallback: T };
  readonly read: (value: unknown) => T;
}

function option<T>(described: Described<T>): Option<T> {
  return {
    env: null,
    takes: described.takes,
    defaultText: described.optional?.text ?? null,
    fallback: described.optional?.fallback as T,
    secret: described.secret ?? false,
    meaning: described.meaning,
    read: described.read,
    fromText: (text) => text,
  };
}

function name(takes: string, meaning: string, fault: (value: string) => string | null): Option<string> {
  return option({
    takes,
    meaning,
    read: (value) => {
      const wrong = typeof value === 'string' ? fault(value) : 'must be text';
      if (wrong !== null) throw new WrongValue(`is ${show(value)}: it ${wrong}`, takes);
      return value as string;
    },
  });
}

function modalities(meaning: string): Option<readonly string[]> {
  const takes = `list of ${MODALITIES.map((one) => `\`${one}\``).join(', ')}`;
  return option<readonly string[]>({
    takes,
    meaning,
    optional: { text: '["text"]', fallback: ['text'] },
    read: (value) => {
      const right = `a list with one or more of ${MODALITIES.join(', ')}, such as ["text", "image"]`;
      if (!Array.isArray(value) || value.length === 0) throw new WrongValue(`is ${Array.isArray(value) ? 'an empty list' : show(value)}`, right);
      const unknown: unknown = value.find((one) => !(MODALITIES as readonly unknown[]).includes(one));
      if (unknown !== undefined) throw new WrongValue(`has ${show(unknown)}`, right);
      return [...new Set(value as string[])];
    },
  });
}

/**
 * A price, kept exactly. The bound tells a price per token, per thousand or in cents from one per unit of this meter
 * before anybody is charged a million times too much.
 */
function price(meter: Meter, unit: string, most: number, optional: boolean): Option<MicroUsd | null> {
  const takes = `USD per ${unit}, 0.000001 to ${most}, or 0 for free`;
  const right = `a decimal number of USD per ${unit}, from 0.000001 to ${most}, or 0 for free`;
  const ceiling = parseUsd(most);
  return option<MicroUsd | null>({
    takes,
    meaning: `Price per ${unit}, as number or text; read exactly.`,
    ...(optional ? { optional: { text: 'not charged', fallback: null } } : {}),
    read: (value) => {
      let amount: MicroUsd;
      try {
        amount = parseUsd(typeof value === 'bigint' ? String(value) : value, 'it');
        if (amount > ceiling) throw new MoneyError(`it is more than ${most} USD`);
        return parseRates({ [meter]: typeof value === 'bigint' ? String(value) : value })[meter]!;
      } catch (error) {
        if (!(error instanceof MoneyError)) throw error;
        throw new WrongValue(`is ${show(value)}: ${error.message}`, `${right}. Prices are per ${unit}`);
      }
    },
  });
}

/** The keys of a `[[models]]` block, as a provider's own proxy has them too. */
export const MODEL_OPTIONS = {
  name: name(
    `1 to ${SERVICE_NAME_MAX} characters of A-Z a-z 0-9 . _ / : -`,
    'Name that consumers call the model by. Providers that offer the same name compete for its calls.',
    serviceNameFault,
  ),
  display_name: name('1 to 200 printable characters', 'Name that people read; should include the name of the provider.', displayNameFault),
  provider_name: name(
    '1 to 64 characters of A-Z a-z 0-9 space . _ -',
    'Who provides the model. Its id, a public key, and its earnings account are derived from this name.',
    providerNameFault,
  ),
  context_length: whole({
    min: 1,
    max: 100_000_000,
    default: 131_072,
    meaning: 'Most tokens of one request. A call without `max_tokens` locks the price of what this leaves: declare it.',
  }),
  max_output_tokens: option<number | null>({
    takes: 'whole number, 1 to context_length',
    meaning: 'Most tokens of one answer.',
    optional: { text: 'what the context leaves', fallback: null },
    read: whole({ min: 1, max: 100_000_000, default: 1, meaning: '' }).read,
  }),
  input_modalities: modalities('What a request may hold.'),
  output_modalities: modalities('What an answer may hold.'),
  'pricing.prompt': price('prompt', '1M prompt tokens', 10_000, false),
  'pricing.completion': price('completion', '1M completion tokens', 10_000, false),
  'pricing.image': price('image', 'input image', 1_000, true),
  'params.model': option({
    takes: 'text of 1 to 256 printable characters',
    meaning: 'Name of the model at the upstream API.',
    read: (value) => {
      const right = 'the name of the model at the upstream API, 1 to 256 printable characters';
      if (typeof value !== 'string' || value.length === 0 || value.length > 256 || /[\p{C}\p{Zl}\p{Zp}]/u.test(value)) {
        throw new WrongValue(`is ${show(value)}`, right);
      }
      return value;
    },
  }),
  'params.api_base': option({
    takes: 'an http:// or https:// URL',
    meaning:
      'Base address of the upstream API, to which `/chat/completions` is appended. An address without a path gets `/v1`: `https://api.example.com` and `https://api.example.com/v1/` are the same.',
    read: readApiBase,
  }),
  'params.api_key': option<string | null>({
    takes: 'text, `std::env::NAME`, or "" for none',
    meaning: 'Key that the upstream API asks for, sent as a bearer token.',
    secret: true,
    read: (value) => {
      const right = '"std::env::NAME" to read it from an environment variable, or "" when the upstream asks for none';
      if (typeof value !== 'string') throw new WrongValue('is not text', right);
      if (!/^[!-~]{0,4096}$/.test(value)) throw new WrongValue('holds characters that a header cannot carry, or is longer than 4096', right);
      return value === '' ? null : value;
    },
  }),
} as const satisfies Record<string, Option<unknown>>;

export type ModelKey = keyof typeof MODEL_OPTIONS;
export type ModelValues = { readonly [K in ModelKey]: ValueOf<(typeof MODEL_OPTIONS)[K]> };

const CHAT_PATH = '/chat/completions';

function readApiBase(value: unknown): string {
  const right = 'the base address of the upstream API, such as https://api.example.com/v1';
  if (typeof value !== 'string' || value.length > 2_048) throw new WrongValue(`is ${show(value)}`, right);
  const url = URL.parse(value);
  const fault = urlFault(value, ['http:', 'https:']);
  // A URL with credentials in it is not repeated.
  if (url && (url.username || url.password)) throw new WrongValue('holds credentials', `${right}; the key goes to params.api_key`);
  if (fault !== null || !url) throw new WrongValue(value.includes('@') ? `${fault}` : `is ${show(value)}: it ${fault}`, right);
  if (url.search || url.hash || value.includes('?') || value.includes('#')) throw new WrongValue('has a query or a fragment', right);
  const path = url.pathname.replace(/\/+$/, '');
  if (path.endsWith(CHAT_PATH))
    throw new WrongValue(`is ${show(value)}`, `the address up to ${CHAT_PATH}: ${url.origin}${path.slice(0, -CHAT_PATH.length)}`);
  return `${url.origin}${path || '/v1'}`;
}

/** A validated block as the catalogue takes it. */
export function toServiceConfig(values: ModelValues): ServiceConfig {
  const rates: Partial<Record<Meter, MicroUsd>> = {};
  for (const meter of ['prompt', 'completion', 'image'] as const) {
    const rate = values[`pricing.${meter}`];
    if (rate !== null) rates[meter] = rate;
  }
  return {
    primitive: 'model',
    name: values.name,
    displayName: values.display_name,
    providerName: values.provider_name,
    rates: rates satisfies Rates,
    contextLength: values.context_length,
    maxOutputTokens: values.max_output_tokens,
    inputModalities: values.input_modalities,
    outputModalities: values.output_modalities,
    upstreamModel: values['params.model'],
    apiBase: values['params.api_base'],
    apiKey: values['params.api_key'],
  };
}
