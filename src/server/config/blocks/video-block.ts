import { MoneyError, formatUsd, parseUsd, type MicroUsd, type Rates } from '#billing/amounts';
import { choice, option, tableOption, textList } from '../option.ts';
import { show, WrongValue } from '../problem.ts';
import { VIDEO_API } from '../upstream-api.ts';
import { COMMON_OPTIONS, defineBlock, headTimeout, MEDIA_OPTIONS, UPSTREAM_MODEL, withTimeouts } from './block.ts';
import { declaredOptions } from './declared.ts';
import { alwaysWritten, field, flagField } from './field.ts';
import { apiOrSdkOptions, toApiOrSdkTarget } from './sdk-options.ts';
import { tableCost } from './price-tiers.ts';
import { optionalPrice, price, SECOND_PRICE, VIDEO_PRICE, perUnit, rates } from './price.ts';

const RESOLUTIONS = ['480p', '720p', '1080p', '4k'];
const WITH_AUDIO = '+audio';
/** Multipliers have six decimals, like prices. */
const ONE = 1_000_000n;
const MULTIPLIER_MAX = 10n * ONE;

const resolutionFault = (resolution: string) =>
  RESOLUTIONS.includes(resolution) ? null : `must be one of ${RESOLUTIONS.join(', ')}`;

const offer = {
  ...COMMON_OPTIONS,
  ...MEDIA_OPTIONS,
  ...declaredOptions('media'),
  durations: alwaysWritten(
    'media.durations',
    textList({
      takes: 'list of lengths such as `5s`',
      meaning: 'Lengths of videos that the service makes.',
      fault: (value) => (/^[1-9]\d{0,3}s$/.test(value) ? null : 'is not written like 5s'),
      max: 100,
    }),
  ),
  'pricing.per_second': tableOption({
    takes: `table of ${RESOLUTIONS.map((one) => `\`${one}\``).join(', ')} with USD per second`,
    meaning: 'Price of a second of video in each resolution that the service makes.',
    entries: {
      fault: resolutionFault,
      value: price(SECOND_PRICE),
      max: RESOLUTIONS.length,
    },
  }),
  'pricing.base': optionalPrice(VIDEO_PRICE),
  'pricing.audio_multiplier': option({
    takes: 'decimal number, 1 to 10',
    meaning: 'Factor of the price of a second for a video with sound. The product must be whole micro-USD.',
    optional: { text: '1', fallback: ONE },
    read: readMultiplier,
  }),
  'params.inputs': flagField(
    'media.filesOnly',
    choice({
      values: ['addresses', 'files'],
      default: 'addresses',
      meaning:
        'How the service gets pictures, videos and sound that a request names by address: as `addresses`, or as `files` that the gateway fetches.',
    }),
    'files',
  ),
  'params.model': field('media.upstreamModel', UPSTREAM_MODEL),
};

function readMultiplier(value: unknown): bigint {
  const right = 'a decimal number from 1 to 10 with at most 6 decimal places';
  if (typeof value !== 'number' && typeof value !== 'string') throw new WrongValue(`is ${show(value)}`, right);
  try {
    const multiplier = parseUsd(value);
    if (multiplier >= ONE && multiplier <= MULTIPLIER_MAX) return multiplier;
  } catch (error) {
    if (!(error instanceof MoneyError)) throw error;
  }
  throw new WrongValue(`is ${show(value)}`, right);
}

const target = {
  cost: tableCost(
    {
      prices: { base: VIDEO_PRICE },
      tables: {
        per_second: { bounds: SECOND_PRICE, takes: 'resolutions', fault: resolutionFault, max: RESOLUTIONS.length },
      },
      others: ['audio_multiplier'],
      meaning: 'A resolution that `per_second` does not name costs as much as the dearest one. ',
      example: '{ per_second = { "720p" = 0.05 } }',
    },
    ({ single: { base = null }, byName: { per_second: perSecond = {} }, others: { audio_multiplier: multiplier } }) =>
      videoRates(perSecond, base, multiplier === undefined ? ONE : readMultiplier(multiplier)),
  ),
  ...apiOrSdkOptions(VIDEO_API.path),
  'params.head_timeout_ms': headTimeout('video model'),
};

interface VideoPrices {
  readonly rates: Rates;
  readonly variants: Readonly<Record<string, Rates>>;
  readonly media: { readonly resolutions: readonly string[]; readonly formats: readonly string[] };
}

/** The rate of a second with sound. The division is exact, because a rate is a multiple of 1,000,000. */
const withSound = (second: MicroUsd, multiplier: bigint): MicroUsd => (second * multiplier) / ONE;

/**
 * `[[videos]]`: an API that makes videos. There is a variant for each resolution without sound, and one with sound. The
 * rates of the service itself are the highest of them, because a video that names no resolution may cost that much.
 */
export const VIDEO_BLOCK = defineBlock({
  primitive: 'video',
  offer,
  target,
  check({ 'pricing.per_second': perSecond, 'pricing.audio_multiplier': multiplier }, complain) {
    if (Object.keys(perSecond).length === 0)
      complain('pricing.per_second', 'has no price', `one or more of ${RESOLUTIONS.join(', ')}`);
    for (const [resolution, second] of Object.entries(perSecond))
      if (withSound(second, multiplier) % ONE !== 0n)
        complain(
          'pricing.audio_multiplier',
          `times ${perUnit(second)} USD is finer than 0.000001 USD per second of ${resolution}`,
          'a multiplier that gives a price of at most 6 decimal places',
        );
  },
  combine({
    'pricing.per_second': perSecond,
    'pricing.base': call,
    'pricing.audio_multiplier': multiplier,
  }): VideoPrices {
    return {
      ...videoRates(perSecond, call, multiplier),
      media: { resolutions: Object.keys(perSecond), formats: [] },
    };
  },
  separate({ rates: { call }, variants, media: { resolutions } }) {
    const multiplier = audioMultiplier(variants);
    return {
      'pricing.per_second': Object.fromEntries(
        resolutions.map((resolution) => [resolution, perUnit(variants[resolution]?.second ?? 0n)]),
      ),
      'pricing.base': call === undefined ? undefined : perUnit(call),
      'pricing.audio_multiplier': multiplier === ONE ? undefined : formatUsd(multiplier),
    };
  },
  writtenLast: ['quotes', 'params.inputs'],
  toTarget: ({ 'params.head_timeout_ms': headMs, cost, ...values }, ...rest) =>
    withTimeouts({ ...toApiOrSdkTarget(values, ...rest), ...(cost === null ? {} : { cost }) }, headMs),
});

/** The rates of each resolution with and without sound, and the highest of them. */
function videoRates(
  perSecond: Readonly<Record<string, MicroUsd>>,
  call: MicroUsd | null,
  multiplier: bigint,
): Pick<VideoPrices, 'rates' | 'variants'> {
  const variants: [string, Rates][] = [];
  let dearest = 0n;
  for (const [resolution, second] of Object.entries(perSecond)) {
    const withAudio = withSound(second, multiplier);
    variants.push([resolution, rates({ second, call })], [resolution + WITH_AUDIO, rates({ second: withAudio, call })]);
    if (withAudio > dearest) dearest = withAudio;
  }
  return { rates: rates({ second: dearest, call }), variants: Object.fromEntries(variants) };
}

/** The multiplier between the variants with and without sound. 1 if all are free. */
function audioMultiplier(variants: Readonly<Record<string, Rates>>): MicroUsd {
  for (const [name, { second }] of Object.entries(variants)) {
    if (second && !name.endsWith(WITH_AUDIO)) return ((variants[name + WITH_AUDIO]?.second ?? second) * ONE) / second;
  }
  return ONE;
}
