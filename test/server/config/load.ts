import { loadConfig, type LoadOptions } from '../../../src/server/config/file.ts';
import { ConfigError, type ConfigProblem } from '../../../src/server/config/problem.ts';
import type { Config } from '../../../src/server/config/config.ts';

/** A configuration from text, with an empty environment unless one is given. */
export function load(text: string, options: Partial<LoadOptions> = {}): Config {
  return loadConfig({ file: 'tollgate.toml', text, env: {}, mode: 'production', ...options });
}

/** The problems of a text that must have some. */
export function problemsOf(text: string, options: Partial<LoadOptions> = {}): readonly ConfigProblem[] {
  try {
    load(text, options);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  throw new Error(`no problem was found in:\n${text}`);
}

type Lines = Readonly<Record<string, string>>;
/** What replaces lines of a block by their keys; `null` leaves one out. */
export type Changes = Readonly<Record<string, string | null>>;

/** Right blocks, each with no more than it must have. */
const DEFAULTS = {
  models: {
    'pricing.prompt': '0.15',
    'pricing.completion': '0.6',
    'params.model': '"small"',
    'params.api_base': '"http://127.0.0.1:9/v1"',
    'params.api_key': '"k"',
  },
  tools: { endpoint: '"http://127.0.0.1:9/mcp"', 'pricing.per_call': '0.01' },
  agents: { endpoint: '"http://127.0.0.1:9/agent"', 'pricing.per_call': '0.02' },
  images: {
    'pricing.generation': '0.03',
    'params.model': '"paint"',
    'params.api_base': '"http://127.0.0.1:9/v1"',
    'params.api_key': '"k"',
  },
  videos: {
    'params.model': '"film"',
    'params.api_base': '"http://127.0.0.1:9/v1"',
    'params.api_key': '"k"',
    'pricing.per_second.720p': '0.1',
  },
} as const satisfies Record<string, Lines>;

export type BlockTable = keyof typeof DEFAULTS;

const NAMES: Lines = { name: '"acme/small"', display_name: '"Small (Acme)"', provider_name: '"Acme"' };

/** A right block of this kind, changed. A dot in a key stands for a table. */
export function block(table: BlockTable, changes: Changes = {}): string {
  const lines = Object.entries<string | null>({ ...NAMES, ...DEFAULTS[table], ...changes }).filter(
    ([, value]) => value !== null,
  );
  const tables = Map.groupBy(lines, ([key]) => key.slice(0, Math.max(0, key.lastIndexOf('.'))));
  const text = (tables.get('') ?? []).map(([key, value]) => `${key} = ${value}`);
  for (const [inner, entries] of tables) {
    if (inner !== '')
      text.push(`[${table}.${inner}]`, ...entries.map(([key, value]) => `${key.slice(inner.length + 1)} = ${value}`));
  }
  return [`[[${table}]]`, ...text, ''].join('\n');
}

export const modelBlock = (changes: Changes = {}): string => block('models', changes);
