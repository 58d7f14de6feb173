import type { UsageClaim } from './behaviour.ts';

/** Token counts that the test provider really produced. */
export interface TokenCounts {
  readonly prompt: number;
  readonly completion: number;
}

/** The JSON text of a `usage` value, or null if the field is omitted. */
export function usageText(claim: UsageClaim, { prompt, completion }: TokenCounts): string | null {
  switch (claim) {
    case 'true':
    case 'twice':
    case 'every':
    case 'after-done':
      return usage(prompt, completion, prompt + completion);
    case 'none':
      return null;
    case 'null':
      return 'null';
    case 'empty':
      return '{}';
    case 'zero':
      return usage(0, 0, 0);
    case 'x1000':
      return usage(prompt * 1000, completion * 1000, (prompt + completion) * 1000);
    case 'huge':
      return usage('1e300', '1e300', '2e300');
    case 'negative':
      return usage(-prompt, -completion, -prompt - completion);
    case 'fraction':
      return usage(prompt + 0.5, completion + 0.5, prompt + completion + 1);
    case 'strings':
      return usage(`"${prompt}"`, `"${completion}"`, `"${prompt + completion}"`);
    case 'nan':
      return usage('"NaN"', '"NaN"', '"NaN"');
    case 'nan-literal':
      return usage('NaN', 'NaN', 'NaN');
    case 'no-total':
      return `{"prompt_tokens":${prompt},"completion_tokens":${completion}}`;
    case 'wrong-total':
      return usage(prompt, completion, prompt + completion + 7);
  }
}

function usage(prompt: number | string, completion: number | string, total: number | string): string {
  return `{"prompt_tokens":${prompt},"completion_tokens":${completion},"total_tokens":${total}}`;
}
