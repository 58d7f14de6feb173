import type { Primitive } from '#config';
import type { PriceView } from '#gateway';

/** The typical use by which prices of one kind are compared. `services-schema.ts` describes it to clients. */
const TYPICAL = { promptTokens: 1_000, completionTokens: 1_000, seconds: 5 } as const;
const PER_TOKENS = 1_000_000;

/** The members of prices that a typical use is charged by, in USD. */
interface Rates {
  readonly prompt?: number | null;
  readonly completion?: number | null;
  readonly per_call?: number | null;
  readonly per_task?: number | null;
  readonly per_second?: number | Readonly<Record<string, number>>;
  readonly generation?: number;
  readonly base?: number;
}

/** The offered length of a video that is nearest to 5 seconds. Without a list it is 5 seconds. */
export function typicalSeconds(durations: readonly string[]): number {
  const offered = durations.map((text) => Number.parseFloat(text)).filter((seconds) => seconds > 0);
  const far = (seconds: number) => Math.abs(seconds - TYPICAL.seconds);
  return offered.reduce((best, each) => (far(each) < far(best) ? each : best), offered[0] ?? TYPICAL.seconds);
}

/**
 * The cost in USD of a typical use of a service. For a model: 1,000 tokens in and 1,000 out. For others: one call of a
 * tool, one message to an agent, one image, or a video of about 5 seconds in the cheapest resolution. If a tool or an
 * agent is charged by use, the use is 1,000 tokens in, 1,000 out and one second.
 */
export function typicalUsd(primitive: Primitive, price: PriceView, durations: readonly string[] = []): number {
  const { prompt, completion, per_call, per_task, per_second = 0, generation, base } = price as Rates;
  const tokens = ((prompt ?? 0) * TYPICAL.promptTokens + (completion ?? 0) * TYPICAL.completionTokens) / PER_TOKENS;
  switch (primitive) {
    case 'model':
      return round(tokens);
    case 'tool':
    case 'agent':
      return round((per_call ?? per_task ?? 0) + tokens + (typeof per_second === 'number' ? per_second : 0));
    case 'image':
      return generation ?? 0;
    case 'video':
      return round(
        (base ?? 0) + typicalSeconds(durations) * Math.min(...Object.values(per_second as Record<string, number>)),
      );
  }
}

/** Rounds away the errors of binary floating point. */
const round = (usd: number): number => Number(usd.toPrecision(12));
