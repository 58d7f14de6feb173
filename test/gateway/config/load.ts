import { loadConfig, type LoadOptions } from '../../../src/gateway/config-file.ts';
import { ConfigError, type ConfigProblem } from '../../../src/gateway/config-problem.ts';
import type { Config } from '../../../src/gateway/config.ts';

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

/** A right [[models]] block; what is given replaces a line by its key, and `null` leaves it out. */
export function modelBlock(changes: Readonly<Record<string, string | null>> = {}): string {
  const lines = (defaults: Readonly<Record<string, string>>, prefix: string) =>
    [
      ...new Set([
        ...Object.keys(defaults),
        ...Object.keys(changes)
          .filter((key) => (prefix ? key.startsWith(prefix) : !key.includes('.')))
          .map((key) => key.slice(prefix.length)),
      ]),
    ]
      .map((key) => [key, prefix + key in changes ? changes[prefix + key] : defaults[key]] as const)
      .filter(([, value]) => value !== null)
      .map(([key, value]) => `${key} = ${value}`);
  return [
    '[[models]]',
    ...lines({ name: '"acme/small"', display_name: '"Small (Acme)"', provider_name: '"Acme"' }, ''),
    '[models.pricing]',
    ...lines({ prompt: '0.15', completion: '0.6' }, 'pricing.'),
    '[models.params]',
    ...lines({ model: '"small"', api_base: '"http://127.0.0.1:9/v1"', api_key: '"k"' }, 'params.'),
    '',
  ].join('\n');
}
