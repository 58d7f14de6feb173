import type { Primitive } from '#config';
import type { Offer, PriceView } from '#catalog';

/* The typical use of a service of each kind, by whose cost the market compares prices. */

const PER_MILLION = 1_000_000;
const TOKENS = 1_000;
const SECONDS = 5;
/**
 * A minute of sound: about 1,000 characters that are read aloud, which are 250 tokens of text. Vendors make 10 to 25
 * tokens of a second of sound, and say the same price for a minute of both.
 */
const MINUTE = { characters: 1_000, textTokens: 250, soundTokens: 1_200 } as const;

/** The uses, for clients. */
export const TYPICAL_USES =
  '1,000 tokens read and 1,000 written, a minute of speech (1,000 characters, or 250 tokens read and 1,200 of sound written), a minute of sound transcribed (or 1,200 tokens of sound read and 250 written), one call of a tool, one message to an agent, one image, a video of about 5 seconds in the resolution that costs least';

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
      return round(ofModel(model?.outputModalities ?? [], rates, tokens) + (per_call ?? 0));
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
function ofModel(outputs: readonly string[], rates: UseRates, tokens: number): number {
  const { prompt, completion, audio = prompt, audio_output = completion, character, per_minute = 0 } = rates;
  const { characters, textTokens, soundTokens } = MINUTE;
  if (outputs.includes('speech'))
    return millions(characters, character) + millions(textTokens, prompt) + millions(soundTokens, audio_output);
  if (outputs.includes('transcription'))
    return per_minute + millions(soundTokens, audio) + millions(textTokens, completion);
  return tokens;
}

const millions = (units: number, usd: number | null | undefined): number => (units * (usd ?? 0)) / PER_MILLION;

/** Rounds away the errors of binary floating point. */
const round = (usd: number): number => Number(usd.toPrecision(12));
