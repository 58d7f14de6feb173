import { formatUsd, toUsdNumber, type Settlement } from '#billing/amounts';

export const withCost = (
  usage: Readonly<Record<string, unknown>>,
  { charged, fee }: Settlement,
  receipt: string | null,
): Record<string, unknown> => ({
  ...usage,
  cost: toUsdNumber(charged),
  cost_details: {
    charged_usd: formatUsd(charged),
    fee_usd: formatUsd(fee),
    ...(receipt === null ? {} : { receipt }),
  },
});

export const usageSchema = {
  title: 'AudioUsage',
  type: 'object',
  additionalProperties: true,
  properties: {
    type: { type: 'string', enum: ['tokens', 'duration', 'characters'] },
    seconds: { type: 'number', description: 'Seconds of sound, each begun one counts.' },
    characters: { type: 'integer', description: 'Characters of `input`.' },
    input_tokens: { type: 'integer', description: 'Tokens.' },
    output_tokens: { type: 'integer', description: 'Tokens.' },
    total_tokens: { type: 'integer', description: 'Tokens.' },
    estimated: { type: 'boolean', description: 'The gateway measured it, because the provider did not report it.' },
    cost: { type: 'number', description: 'USD charged.' },
  },
} as const;

/** Whether both are reported, and not both as 0: no work has neither. */
export const isClaim = ({
  input,
  output,
}: {
  readonly input: number | null;
  readonly output: number | null;
}): boolean => input !== null && output !== null && input + output > 0;

/** A number of a claim, rounded up; null for anything else. */
export function claimedNumber(value: unknown): number | null {
  const number = typeof value === 'string' && /^\d{1,9}(?:\.\d{1,9})?$/.test(value) ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isFinite(number) || number < 0 || number > Number.MAX_SAFE_INTEGER)
    return null;
  return Math.ceil(number - ROUNDING);
}

/** Whole seconds of sound are often a thousandth more, because a codec adds samples. */
const ROUNDING = 0.005;
