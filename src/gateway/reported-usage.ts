import type { Usage } from '#billing';
import type { ProviderFlag } from './call.ts';

const METERS = [
  ['prompt', 'prompt_tokens'],
  ['completion', 'completion_tokens'],
  ['second', 'seconds'],
] as const;

/** What one call used, as a tool or an agent claims it, or why its claim counts for nothing. */
export interface ReportedUsage {
  readonly usage: Usage | null;
  readonly flags: readonly ProviderFlag[];
}

/**
 * Reads `tollgate/usage`: `{"prompt": 120, "completion": 30, "second": 1.5}`, also by the names that chat completions have. One call is counted beside it.
 * No claim, or one that is none, is null with its flag: nothing is charged.
 */
export function readReportedUsage(claim: unknown): ReportedUsage {
  if (claim === undefined || claim === null) return { usage: null, flags: ['usage_missing'] };
  if (typeof claim !== 'object') return { usage: null, flags: ['usage_invalid'] };
  const usage: Partial<Record<'prompt' | 'completion' | 'second' | 'call', bigint>> = { call: 1n };
  for (const [meter, alias] of METERS) {
    const said = claim as Readonly<Record<string, unknown>>;
    const units = said[meter] ?? said[alias];
    if (units === undefined || units === null) continue;
    if (typeof units !== 'number' || !Number.isFinite(units) || units < 0 || units > Number.MAX_SAFE_INTEGER)
      return { usage: null, flags: ['usage_invalid'] };
    // Part of a second, or of a token, is charged as a whole one.
    usage[meter] = BigInt(Math.ceil(units));
  }
  return { usage, flags: [] };
}
