import { choice, option, trueOrFalse } from '../option.ts';
import { show, WrongValue } from '../problem.ts';
import { flagField, optionalField } from './field.ts';

/* What a provider declares about its service, and consumers can choose by. The gateway cannot check it. */

/** Formats of a model's weights, as OpenRouter's API names them. */
const QUANTIZATIONS = ['int4', 'int8', 'fp4', 'mxfp4', 'nvfp4', 'fp6', 'fp8', 'mxfp8', 'fp16', 'bf16', 'fp32'] as const;

/** A place: `eu`, `us-east-1`. */
const REGION = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const REGION_MAX = 32;

/** The values that a provider can declare, and a request can ask for. */
export const DECLARABLE = { quantizations: QUANTIZATIONS, region: REGION, regionMax: REGION_MAX } as const;

/** Options of models, images and videos. Their fields are in the facts of the service. */
export const declaredOptions = <const G extends 'model' | 'media'>(facts: G) => ({
  data_collection: flagField(
    `${facts}.collectsNothing`,
    choice({
      values: ['allow', 'deny'],
      default: 'allow',
      meaning:
        'With `deny` you declare that nobody behind this service keeps what requests contain for other purposes, such as training. Requests with `provider.data_collection: "deny"` go only to such services.',
    }),
    'deny',
  ),
  zdr: flagField(
    `${facts}.zdr`,
    trueOrFalse({
      optional: { text: 'false', fallback: false },
      meaning:
        'With `true` you declare that nothing of a request or its answer is kept after the answer (zero data retention). Requests with `provider.zdr: true` go only to such services. It includes `data_collection = "deny"`.',
    }),
    true,
  ),
  region: optionalField(
    `${facts}.region`,
    option<string | null>({
      takes: `1 to ${REGION_MAX} small letters, digits and hyphens, such as \`eu\``,
      meaning: 'Where requests are processed. Requests with `provider.region` go only to services of that region.',
      optional: { text: 'not declared', fallback: null },
      read(value) {
        if (typeof value !== 'string' || value.length > REGION_MAX || !REGION.test(value))
          throw new WrongValue(
            `is ${show(value)}`,
            `1 to ${REGION_MAX} small letters, digits and hyphens, such as "eu"`,
          );
        return value;
      },
    }),
  ),
});

/** Whether the work of a request ends with its connection. The field is absent if all of it does. */
export const stopsOption = <const G extends 'model' | 'media'>(facts: G) =>
  optionalField(
    `${facts}.stops`,
    option<'streams' | false | null>({
      takes: '`true`, `"streams"` or `false`',
      meaning:
        'Whether the provider stops its work, and what it bills for it, when the connection of a request is closed. `"streams"`: only if the answer is streamed. Where it does not stop, an answer whose client has left is [read on](reference/endings.md#when-a-client-leaves), and its whole cost is charged. [Known providers](reference/known-providers.md) are known by the host of `params.api_base`.',
      optional: { text: 'that of a known provider, else true', fallback: null },
      read(value) {
        if (value === true) return null;
        if (value === false || value === 'streams') return value;
        throw new WrongValue(`is ${show(value)}`, 'true, "streams" or false');
      },
    }),
  );

export const QUANTIZATION = option<(typeof QUANTIZATIONS)[number] | null>({
  takes: `one of ${QUANTIZATIONS.map((one) => `\`${one}\``).join(', ')}`,
  meaning:
    'Format of the weights that the service runs. Requests with `provider.quantizations` go only to services that declare one of them.',
  optional: { text: 'not declared', fallback: null },
  read(value) {
    const known = QUANTIZATIONS.find((one) => one === value);
    if (known === undefined) throw new WrongValue(`is ${show(value)}`, `one of ${QUANTIZATIONS.join(', ')}`);
    return known;
  },
});
