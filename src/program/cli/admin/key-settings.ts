import { CliError, facts, type Paint, isUsd } from '../terminal.ts';
import { parseTag, tagsText } from '#accounts/names';
import type { AdminFlags } from './admin-client.ts';

export interface Key {
  readonly hash: string;
  readonly name: string;
  readonly disabled: boolean;
  readonly limit: number | null;
  readonly limit_reset: string | null;
  readonly limit_soft: boolean;
  readonly limit_notify: readonly number[] | null;
  readonly requests_per_minute: number | null;
  readonly tokens_per_minute: number | null;
  readonly usage: number;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly continue: boolean | null;
  readonly allowed_services: readonly string[] | null;
  readonly ask_above: number | null;
  readonly tags: Readonly<Record<string, string>> | null;
  /** The program that has it by signing in; null for a key that was created. */
  readonly client: string | null;
  readonly development: boolean;
}

/** Settings of a key, as typed. */
export interface SettingFlags extends AdminFlags {
  readonly name?: string;
  readonly limit?: string;
  readonly limitReset?: string;
  readonly limitSoft?: boolean;
  readonly limitNotify?: string[];
  readonly requestsPerMinute?: string;
  readonly tokensPerMinute?: string;
  readonly expires?: string;
  readonly continue?: 'true' | 'false' | 'none';
  readonly allow?: string[];
  readonly allowAll?: boolean;
  readonly askAbove?: string;
  readonly tag?: string[];
}

/** Words that take a limit away. */
const NO_LIMIT = ['none', 'never'];

/** The fields of a key that the options name, as a body of the admin API. Throws CliError for a wrong one. */
export function settingsBody(flags: SettingFlags): Readonly<Record<string, unknown>> {
  const body = {
    name: flags.name,
    limit: usdOf('--limit', flags.limit),
    limit_reset: orNull(flags.limitReset),
    limit_soft: flags.limitSoft,
    limit_notify: percentagesOf(flags.limitNotify),
    requests_per_minute: countOf('--requests-per-minute', flags.requestsPerMinute),
    tokens_per_minute: countOf('--tokens-per-minute', flags.tokensPerMinute),
    expires_at: orNull(flags.expires),
    continue: continueOf(flags.continue),
    allowed_services: flags.allowAll ? null : flags.allow,
    ask_above: usdOf('--ask-above', flags.askAbove),
    tags: tagsOf(flags.tag),
  };
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
}

const orNull = (text: string | undefined): string | null | undefined =>
  text !== undefined && NO_LIMIT.includes(text) ? null : text;

const continueOf = (text: SettingFlags['continue']): boolean | null | undefined =>
  text === undefined ? undefined : text === 'none' ? null : text === 'true';

function usdOf(option: string, text: string | undefined): number | null | undefined {
  const value = orNull(text);
  if (typeof value !== 'string') return value;
  if (isUsd(value)) return Number(value);
  throw new CliError(
    `${option} is an amount in USD with at most 6 decimal places, such as 5 or 0.25, or none, not "${value}"`,
  );
}

function countOf(option: string, text: string | undefined): number | null | undefined {
  const value = orNull(text);
  if (typeof value !== 'string') return value;
  if (/^\d{1,10}$/.test(value)) return Number(value);
  throw new CliError(`${option} is a whole number, such as 60, or none, not "${value}"`);
}

function percentagesOf(texts: readonly string[] | undefined): readonly number[] | null | undefined {
  if (texts === undefined) return undefined;
  if (texts.length === 1 && orNull(texts[0]) === null) return null;
  const wrong = texts.find((text) => !/^\d{1,4}$/.test(text));
  if (wrong === undefined) return texts.map(Number);
  throw new CliError(`--limit-notify has percentages of the limit, such as 50 80 100, or none, not "${wrong}"`);
}

function tagsOf(texts: readonly string[] | undefined): Readonly<Record<string, string>> | null | undefined {
  if (texts === undefined) return undefined;
  if (texts.length === 1 && orNull(texts[0]) === null) return null;
  return Object.fromEntries(
    texts.map((text) => {
      const tag = parseTag(text);
      if (tag === null) throw new CliError(`--tag is name=value, such as team=search, or none, not "${text}"`);
      return tag;
    }),
  );
}

export function settingsText(key: Key, paint: Paint): string {
  const rate = (most: number | null) => (most === null ? "the gateway's" : `${most} a minute`);
  const goesOn =
    key.continue === null ? 'as the model says' : `${key.continue ? 'yes' : 'no'}, where the request does not say`;
  return facts(
    [
      ['limit', key.limit === null ? 'none' : `${key.limit} USD ${key.limit_reset ?? 'for ever'}`],
      ...(key.limit === null ? [] : [['beyond it', key.limit_soft ? 'notices alone' : 'calls are refused'] as const]),
      ['notices at', key.limit_notify === null ? 'none' : `${key.limit_notify.join(', ')} percent`],
      ['requests', rate(key.requests_per_minute)],
      ['tokens', rate(key.tokens_per_minute)],
      ['expires', key.expires_at ?? 'never'],
      ['may call', key.allowed_services?.join(' ') ?? 'all'],
      ['goes on', goesOn],
      ['tags', tagsText(key.tags ?? {}) || 'none'],
      ['asks above', key.ask_above === null ? 'never' : `${key.ask_above} USD for one call`],
    ],
    paint,
    '  ',
  );
}
