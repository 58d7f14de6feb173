import type { Primitive } from '#config';
import { isOfKind, KINDS_OF_MODELS, type TypicalUnit, type TypicalUnits } from '#config/model-kinds';
import type { Offer, PriceView } from '#catalog';

/* The typical use of a service of each kind, by whose cost the market compares prices. */

const PER_MILLION = 1_000_000;
const TOKENS = 1_000;
const SECONDS = 5;

export const TYPICAL_USES = [
  '1,000 tokens read and 1,000 written',
  ...KINDS_OF_MODELS.flatMap(([, { typicalUse }]) => typicalUse?.words ?? []),
  'one call of a tool, one message to an agent, one image, a video of about 5 seconds in the resolution that costs least',
].join(', ');

/** The members of prices that a typical use is charged by, in USD. */
interface UseRates {
  readonly prompt?: number | null;
  readonly completion?: number | null;
  readonly audio?: number;
  readonly audio_output?: number;
  /** Per 1M characters. */
  readonly character?: number;
  readonly per_minute?: number;
  readonly per_call?: number | null;
  readonly per_task?: number | null;
  readonly per_second?: number | Readonly<Record<string, number>>;
  readonly generation?: number;
  readonly base?: number;
}

/** The offered length of a video that is nearest to 5 seconds. Without a list it is 5 seconds. */
export function typicalSeconds(durations: readonly string[]): number {
  const offered = durations.map((text) => Number.parseFloat(text)).filter((seconds) => seconds > 0);
  const far = (seconds: number) => Math.abs(seconds - SECONDS);
  return offered.reduce((best, each) => (far(each) < far(best) ? each : best), offered[0] ?? SECONDS);
}

/**
 * The cost in USD of a typical use of an offer, see TYPICAL_USES. If a tool or an agent is charged by use, the use is
 * 1,000 tokens in, 1,000 out and one second.
 */
export function typicalUsd({ primitive, model, media }: UsedOffer, price: PriceView): number {
  const rates = price as UseRates;
  const { per_call, per_task, per_second = 0, generation, base } = rates;
  const tokens = millions(TOKENS, rates.prompt) + millions(TOKENS, rates.completion);
  switch (primitive) {
    case 'model':
      return round(ofModel(model, rates) + (per_call ?? 0));
    case 'tool':
    case 'agent':
      return round((per_call ?? per_task ?? 0) + tokens + (typeof per_second === 'number' ? per_second : 0));
    case 'image':
      return generation ?? 0;
    case 'video':
      return round(
        (base ?? 0) +
          typicalSeconds(media?.durations ?? []) * Math.min(...Object.values(per_second as Record<string, number>)),
      );
  }
}

interface UsedOffer {
  readonly primitive: Primitive;
  readonly model: Pick<NonNullable<Offer['model']>, 'outputModalities'> | null;
  readonly media: Pick<NonNullable<Offer['media']>, 'durations'> | null;
}

/** A model is charged by the units of its kind. Sound without a price of its own has that of text. */
function ofModel(model: UsedOffer['model'], rates: UseRates): number {
  const entry = KINDS_OF_MODELS.find(([kind, { typicalUse }]) => typicalUse && model && isOfKind(model, kind));
  const { prompt, completion, audio = prompt, audio_output = completion, character, per_minute } = rates;
  const prices = { prompt, completion, audio, audio_output, character, per_minute } as const;
  const units: TypicalUnits = entry?.[1].typicalUse?.units ?? { prompt: TOKENS, completion: TOKENS };
  let usd = 0;
  for (const [unit, count] of Object.entries(units) as readonly [TypicalUnit, number][])
    usd += unit === 'per_minute' ? count * (per_minute ?? 0) : millions(count, prices[unit]);
  return usd;
}

const millions = (units: number, usd: number | null | undefined): number => (units * (usd ?? 0)) / PER_MILLION;

/** Rounds away the errors of binary floating point. */
const round = (usd: number): number => Number(usd.toPrecision(12));
