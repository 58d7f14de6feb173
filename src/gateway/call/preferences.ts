import { type MicroUsd, MoneyError, parseRates } from '#billing/amounts';
import { GatewayError } from '#errors';
import { DECLARABLE } from '#config';
import { nameSchema, objectField, DOCUMENTED, DOCUMENTED_USD, MUST_BE } from '#http';
import type { DeclaredPreferences } from './declared.ts';

/** A consumer's preferences for the choice of a provider: the body's `provider` object and the name's suffix. */
export interface RoutePreferences {
  /** Provider ids or names to try first, in this order. */
  readonly order: readonly string[];
  /** Only these providers; empty for all. */
  readonly only: readonly string[];
  readonly ignore: readonly string[];
  readonly allowFallbacks: boolean;
  readonly sort: 'price' | 'latency' | 'throughput' | null;
  /** Highest acceptable rates, micro-USD per 1M units. */
  readonly maxPrice: { readonly prompt?: MicroUsd; readonly completion?: MicroUsd; readonly image?: MicroUsd } | null;
  /** Declarations that an offer must have; null for none. */
  readonly declared: DeclaredPreferences | null;
  /** Only offers that get all fields of the request. */
  readonly requireParameters: boolean;
  /** Whether the next model gets content that a provider refused by its policy. */
  readonly contentFallbacks: boolean;
}

export const NO_PREFERENCES: RoutePreferences = {
  order: [],
  only: [],
  ignore: [],
  allowFallbacks: true,
  sort: null,
  maxPrice: null,
  declared: null,
  requireParameters: false,
  contentFallbacks: false,
};

const SORTS = ['price', 'latency', 'throughput'];
const FALLBACKS_MAX = 16;

const names = (about: string) => ({
  type: ['array', 'null'],
  maxItems: 64,
  items: { ...nameSchema, [MUST_BE]: 'the id or name of a provider' },
  description: about,
  [MUST_BE]: 'an array of at most 64 provider ids or names',
});
const price = {
  type: ['number', 'string', 'null'],
  [MUST_BE]: 'a price in USD, such as 0.15 or "0.15"',
  [DOCUMENTED]: DOCUMENTED_USD,
};

const { quantizations: QUANTIZATIONS, region: REGION, regionMax: REGION_MAX } = DECLARABLE;
const REGIONS_MAX = 16;
const REGION_RIGHT = `1 to ${REGION_MAX} small letters, digits and hyphens, such as "eu"`;
const QUANTIZATIONS_ASKED = [...QUANTIZATIONS, 'unknown'];

/**
 * Choices by what providers declare, mostly with OpenRouter's names. The gateway does not check what they declare. The
 * terms of a model cannot be declared, so a value that asks for them is refused.
 */
const declaredFields = {
  require_parameters: {
    type: ['boolean', 'null'],
    description:
      'Whether only providers may serve that get all fields of the request. Default false: the header `x-tollgate-dropped` names the fields that a provider did not get.',
    [MUST_BE]: 'true or false',
  },
  data_collection: {
    enum: ['allow', 'deny', null],
    description: 'With `deny` only providers may serve that declare `data_collection = "deny"`, or `zdr = true`.',
    [MUST_BE]: '"allow" or "deny"',
  },
  zdr: {
    type: ['boolean', 'null'],
    description: 'With `true` only providers may serve that declare `zdr = true` (zero data retention).',
    [MUST_BE]: 'true or false',
  },
  quantizations: {
    type: ['array', 'null'],
    maxItems: QUANTIZATIONS_ASKED.length,
    items: { enum: QUANTIZATIONS_ASKED, [MUST_BE]: `one of ${QUANTIZATIONS_ASKED.join(', ')}` },
    description:
      'Only providers may serve that declare one of these formats of their weights. `unknown` are those that declare none. Empty for all.',
    [MUST_BE]: `a list of ${QUANTIZATIONS_ASKED.join(', ')}`,
  },
  region: {
    type: ['string', 'array', 'null'],
    maxLength: REGION_MAX,
    pattern: REGION.source,
    maxItems: REGIONS_MAX,
    items: { type: 'string', maxLength: REGION_MAX, pattern: REGION.source, [MUST_BE]: REGION_RIGHT },
    description: 'Only providers may serve that declare this region, or one of these.',
    [MUST_BE]: `${REGION_RIGHT}, or a list of at most ${REGIONS_MAX} such`,
  },
  enforce_distillable_text: {
    enum: [false, null],
    description: 'Only `false`: the gateway does not know the terms of a model.',
    [MUST_BE]: 'false or absent: the gateway does not know the terms of a model. Name providers in provider.only',
  },
} as const;

/** Fields of a body that control where the call may go and what it may cost. They are not forwarded to providers. */
export const routingFields = {
  // Beside `provider` it would bound nothing, and the call would be charged.
  max_price: {
    enum: [null],
    description: 'Belongs inside `provider`.',
    [MUST_BE]: 'inside provider, as {"provider": {"max_price": {"prompt": 1}}}',
  },
  models: {
    type: ['array', 'null'],
    maxItems: FALLBACKS_MAX,
    items: { ...nameSchema, [MUST_BE]: 'the name of a model' },
    description:
      'Models that are tried if `model` fails, in this order. Without `model`, the first of them is used as the model. Names that no provider offers are skipped. Not forwarded.',
    [MUST_BE]: `an array of at most ${FALLBACKS_MAX} model names`,
  },
  provider: objectField('How the provider is chosen. Not forwarded. Unknown members are refused.', {
    title: 'ProviderPreferences',
    additionalProperties: false,
    properties: {
      order: names('Providers to try first, in this order.'),
      only: names('Providers that may serve the call.'),
      ignore: names('Providers that must not serve the call.'),
      allow_fallbacks: {
        type: ['boolean', 'null'],
        description: 'Whether a provider outside of `order` may serve. Default true.',
        [MUST_BE]: 'true or false',
      },
      content_fallbacks: {
        type: ['boolean', 'null'],
        description:
          'Whether the next of `models` gets content that a provider has refused by its policy. Default false: the refusal is the answer.',
        [MUST_BE]: 'true or false',
      },
      sort: {
        enum: [...SORTS, null],
        description: 'Criterion by which providers are sorted.',
        [MUST_BE]: `one of ${SORTS.join(', ')}`,
      },
      max_price: objectField('Highest acceptable prices: USD per 1M tokens, and per input image.', {
        title: 'MaxPrice',
        additionalProperties: false,
        properties: { prompt: price, completion: price, image: price },
      }),
      ...declaredFields,
    },
  }),
  session_id: {
    type: ['string', 'null'],
    maxLength: 256,
    description:
      'Calls of one session prefer the provider that served the last one (header: x-session-id). For an agent it names the context. Not forwarded.',
    [MUST_BE]: 'a string of at most 256 characters',
  },
  max_cost: {
    type: ['number', 'string', 'null'],
    description:
      'Largest cost of the request in USD, including all calls that are made for it (header: x-max-cost). Not forwarded.',
    [MUST_BE]: 'an amount in USD, such as 0.05 or "0.05"',
    [DOCUMENTED]: DOCUMENTED_USD,
  },
} as const;

/** The body's `provider` object, with the consumer's preferences for a provider. */
export interface ProviderPreferences {
  order?: string[] | null;
  only?: string[] | null;
  ignore?: string[] | null;
  allow_fallbacks?: boolean | null;
  sort?: 'price' | 'latency' | 'throughput' | null;
  max_price?: {
    prompt?: number | string | null;
    completion?: number | string | null;
    image?: number | string | null;
  } | null;
  require_parameters?: boolean | null;
  content_fallbacks?: boolean | null;
  data_collection?: 'allow' | 'deny' | null;
  zdr?: boolean | null;
  quantizations?: string[] | null;
  region?: string | string[] | null;
}

export function toPreferences(provider: ProviderPreferences): RoutePreferences {
  return {
    order: provider.order ?? [],
    only: provider.only ?? [],
    ignore: provider.ignore ?? [],
    allowFallbacks: provider.allow_fallbacks ?? true,
    sort: provider.sort ?? null,
    maxPrice: provider.max_price ? toMaxPrice(provider.max_price) : null,
    declared: toDeclared(provider),
    requireParameters: provider.require_parameters ?? false,
    contentFallbacks: provider.content_fallbacks ?? false,
  };
}

function toDeclared({ data_collection, zdr, quantizations, region }: ProviderPreferences): DeclaredPreferences | null {
  const declaredPreferences: DeclaredPreferences = {
    denyCollection: data_collection === 'deny',
    zdr: zdr === true,
    quantizations: quantizations ?? [],
    regions: typeof region === 'string' ? [region] : (region ?? []),
  };
  const isNothing =
    !declaredPreferences.denyCollection &&
    !declaredPreferences.zdr &&
    declaredPreferences.quantizations.length + declaredPreferences.regions.length === 0;
  return isNothing ? null : declaredPreferences;
}

function toMaxPrice(prices: NonNullable<ProviderPreferences['max_price']>): RoutePreferences['maxPrice'] {
  try {
    return parseRates(prices);
  } catch (error) {
    if (!(error instanceof MoneyError)) throw error;
    const message = error.message.replaceAll('pricing.', 'provider.max_price.');
    const param = /^provider\.max_price\.\w+/.exec(message)?.[0] ?? 'provider.max_price';
    throw new GatewayError('invalid_request', message, { param, cause: error });
  }
}

/** The models that a request names, without repeats, first choice first. */
export function requestedModels({
  model,
  models,
}: {
  readonly model: string;
  readonly models?: readonly string[] | null;
}): readonly string[] {
  return models?.length ? [...new Set([model, ...models])] : [model];
}

/**
 * For a parsed body with `models` but without `model`: adds the first of them as `model`. Any other body is returned
 * unchanged.
 */
export function withModel(body: unknown): unknown {
  if (typeof body !== 'object' || body === null) return body;
  const { model, models } = body as { readonly model?: unknown; readonly models?: unknown };
  if ((model !== undefined && model !== null) || !Array.isArray(models) || typeof models[0] !== 'string') return body;
  return { ...body, model: models[0] };
}

const SESSION_ID_MAX = 256;

/** The session that the body or a header names; null for none. Throws GatewayError `invalid_request`. */
export function requestedSession(
  body: { readonly session_id?: string | null },
  headers: Readonly<Record<string, string | string[] | undefined>>,
): string | null {
  if (body.session_id) return body.session_id;
  const header = headers['x-session-id'];
  if (typeof header !== 'string' || header === '') return null;
  if (header.length > SESSION_ID_MAX)
    throw new GatewayError('invalid_request', `The x-session-id header must be at most ${SESSION_ID_MAX} characters`, {
      param: 'x-session-id',
    });
  return header;
}
