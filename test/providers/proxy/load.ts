import { ConfigError, type ConfigProblem } from '#config';
import {
  loadProviderFile,
  type LoadProviderOptions,
  type ProviderConfig,
} from '../../../src/providers/proxy/provider-file.ts';

export const ROUTER = '[router]\nurl = "https://router.example"\napi_key = "k"\n';

/**
 * A provider's file from text, which has a `[router]` unless it is given another; with an empty environment unless
 * one is given.
 */
export function loadProviderText(text: string, options: Partial<LoadProviderOptions> = {}): ProviderConfig {
  return loadProviderFile({
    file: '/etc/acme/provider.toml',
    text: /^\[?router\b/m.test(text) ? text : `${text}\n${ROUTER}`,
    env: {},
    ...options,
  });
}

/** The problems of a text that must have some. */
export function providerProblemsOf(text: string, options: Partial<LoadProviderOptions> = {}): readonly ConfigProblem[] {
  try {
    loadProviderText(text, options);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  throw new Error(`no problem was found in:\n${text}`);
}
