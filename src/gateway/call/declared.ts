import { GatewayError } from '#errors';
import type { Offer } from '#catalog';

/* Choices by what offers declare about themselves. The gateway cannot check what they declare. */

export interface DeclaredPreferences {
  /** Nothing is kept for other purposes. */
  readonly denyCollection: boolean;
  /** Nothing is kept after the answer. */
  readonly zdr: boolean;
  /** Formats of weights, `unknown` for offers that declare none; empty for all. */
  readonly quantizations: readonly string[];
  /** Empty for all. */
  readonly regions: readonly string[];
}

interface Declared {
  readonly collectsNothing?: true;
  readonly zdr?: true;
  readonly quantization?: string;
  readonly region?: string;
}

const NOTHING: Declared = {};

const declaredOf = ({ model, media }: Offer): Declared => model ?? media ?? NOTHING;

/** The preferences by their fields of the request: whether one is asked for, and whether an offer meets it. */
const FIELDS = {
  data_collection: {
    isRequested: ({ denyCollection }) => denyCollection,
    // Who keeps nothing at all keeps nothing for other purposes.
    meets: (_wanted, { collectsNothing, zdr }) => collectsNothing === true || zdr === true,
  },
  zdr: {
    isRequested: ({ zdr }) => zdr,
    meets: (_wanted, { zdr }) => zdr === true,
  },
  quantizations: {
    isRequested: ({ quantizations }) => quantizations.length > 0,
    meets: ({ quantizations }, { quantization = 'unknown' }) => quantizations.includes(quantization),
  },
  region: {
    isRequested: ({ regions }) => regions.length > 0,
    meets: ({ regions }, { region }) => region !== undefined && regions.includes(region),
  },
} as const satisfies Record<
  string,
  {
    readonly isRequested: (preferences: DeclaredPreferences) => boolean;
    readonly meets: (preferences: DeclaredPreferences, declared: Declared) => boolean;
  }
>;
const NAMES = Object.keys(FIELDS) as readonly (keyof typeof FIELDS)[];

/** Whether an offer declares what is wanted. */
export function declares(offer: Offer, preferences: DeclaredPreferences): boolean {
  const declared = declaredOf(offer);
  return NAMES.every((name) => !FIELDS[name].isRequested(preferences) || FIELDS[name].meets(preferences, declared));
}

const OFFERS_SHOWN = 8;

/** The error for a model whose `offers` do not declare what is wanted. It says what they declare. */
export function undeclared(name: string, preferences: DeclaredPreferences, offers: readonly Offer[]): GatewayError {
  const requested = NAMES.filter((each) => FIELDS[each].isRequested(preferences));
  const unmet = requested.filter((each) => !offers.some((offer) => FIELDS[each].meets(preferences, declaredOf(offer))));
  const fields = unmet.length > 0 ? unmet : requested;
  const descriptions = offers
    .slice(0, OFFERS_SHOWN)
    .map((offer) => `${offer.provider.name}: ${wordsOf(declaredOf(offer))}`);
  const [first] = fields;
  return new GatewayError(
    'not_found',
    `No provider of ${name} declares what ${fields.map((each) => `provider.${each}`).join(' and ')} asks for. They declare: ${descriptions.join('; ')}`,
    { param: fields.length === 1 ? `provider.${first}` : 'provider' },
  );
}

function wordsOf({ collectsNothing, zdr, quantization, region }: Declared): string {
  const words = [
    ...(collectsNothing ? ['data_collection = "deny"'] : []),
    ...(zdr ? ['zdr = true'] : []),
    ...(quantization === undefined ? [] : [`quantization = "${quantization}"`]),
    ...(region === undefined ? [] : [`region = "${region}"`]),
  ];
  return words.length === 0 ? 'nothing' : words.join(', ');
}
