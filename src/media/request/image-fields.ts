import { GatewayError } from '#errors';
import { isObject } from '#wire';
import {
  DOCUMENTED,
  formSchema,
  hasValue,
  MUST_BE,
  nameSchema,
  onlyIf,
  onlyTogether,
  numberField,
  objectField,
} from '#http';
import { routingFields, type ProviderPreferences } from '#call';
import { INPUT_IMAGES_MAX } from './input-images.ts';
import { IMAGE_FORMATS } from '../image-file.ts';

/* Requests for images in the form of OpenRouter's API: one address for images of a prompt, and of other images. */

/** Its name of the images of a request. */
export const REFERENCES = 'input_references';

const TIER = /^(?:512|\d{1,2}K)$/;

/**
 * Turns a parsed body into one with the gateway's names. Throws GatewayError `invalid_request` for two tiers that
 * differ.
 */
export function fromOpenrouter(value: unknown): unknown {
  if (!isObject(value)) return value;
  // What `trace` asks for happens nowhere here, and no provider gets it.
  const { trace: _, size, aspect_ratio: ratio, ...rest } = value;
  const body: Record<string, unknown> = rest;
  if (ratio !== undefined && ratio !== 'auto') body['aspect_ratio'] = ratio;
  if (typeof size !== 'string' || !TIER.test(size)) return size === undefined ? body : { ...body, size };
  const resolution = body['resolution'] ?? size;
  if (resolution !== size)
    throw new GatewayError(
      'invalid_request',
      `size ${size} and resolution ${String(resolution)} differ: send only one`,
      {
        param: 'size',
      },
    );
  return { ...body, resolution: size };
}

/** Throws GatewayError `invalid_request` for images under the names of other addresses. */
export function refuseOtherImages(body: ImageBody): void {
  for (const name of ['images', 'mask'])
    if ((body[name] ?? null) !== null)
      throw new GatewayError(
        'invalid_request',
        `${name} is not a field of this address: send images as ${REFERENCES}, and masks to /images/edits`,
        { param: name },
      );
}

/* The fields of requests for images. A field that is null counts as absent, because clients send either. */

export const PROMPT_MAX = 32_000;
const IMAGES_MAX = 10;
export const EDGE_MIN = 64;
export const EDGE_MAX = 4096;
export const SEED_MAX = 2_147_483_647;
export const METADATA_BYTES_MAX = 4096;

export interface ImageBody {
  readonly model: string;
  /** Absent only in a quote request. */
  readonly prompt?: string;
  readonly models?: readonly string[] | null;
  readonly provider?: ProviderPreferences | null;
  readonly session_id?: string | null;
  readonly max_cost?: number | string | null;
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  readonly [field: string]: unknown;
}

export const oneOf = (values: readonly string[], about: string) => ({
  enum: [...values, null],
  description: about,
  [MUST_BE]: `one of ${values.join(', ')}`,
});
export const integerField = (minimum: number, maximum: number, about: string) => ({
  type: ['integer', 'null'],
  minimum,
  maximum,
  description: about,
  [MUST_BE]: `an integer from ${minimum} to ${maximum}`,
});
export const textField = (max: number, about: string) => ({
  type: ['string', 'null'],
  maxLength: max,
  description: about,
  [MUST_BE]: `a string of at most ${max} characters`,
});
export const flagField = (about: string) => ({
  type: ['boolean', 'null'],
  description: about,
  [MUST_BE]: 'true or false',
});
/** An edge in pixels as text, from EDGE_MIN to EDGE_MAX. */
const EDGE = '(?:6[4-9]|[7-9][0-9]|[1-9][0-9]{2}|[1-3][0-9]{3}|40(?:[0-8][0-9]|9[0-6]))';
const edgeField = (about: string) => ({
  type: ['integer', 'string', 'null'],
  minimum: EDGE_MIN,
  maximum: EDGE_MAX,
  pattern: '^[1-9][0-9]{1,3}$',
  description: `${about} of the image in pixels, ${EDGE_MIN} to ${EDGE_MAX}. Width and height go together.`,
  [MUST_BE]: `an integer from ${EDGE_MIN} to ${EDGE_MAX}`,
  [DOCUMENTED]: { pattern: `^${EDGE}$` },
});

const SIZE = '^(?:auto|[1-9][0-9]{1,3}x[1-9][0-9]{1,3})$';
const MODEL_RIGHT = 'the name of an image model: 1 to 256 characters without control characters';

const sizeField = {
  type: ['string', 'null'],
  pattern: SIZE,
  description: 'Width and height in one, such as `1024x1024`. `auto` leaves the size to the model.',
  [MUST_BE]: 'auto, or a width and a height such as 1024x1024',
  [DOCUMENTED]: { pattern: `^(?:auto|${EDGE}x${EDGE})$` },
};
const modelField = {
  ...nameSchema,
  description:
    'The name of an image model, optionally with `:floor` (cheapest provider) or `:nitro` (fastest), or the direct form `<provider_pubkey>:<model_name>`.',
  [MUST_BE]: MODEL_RIGHT,
};
const promptField = {
  type: 'string',
  minLength: 1,
  maxLength: PROMPT_MAX,
  description: 'What the image shows.',
  [MUST_BE]: `a string of 1 to ${PROMPT_MAX} characters`,
};
const countField = integerField(1, IMAGES_MAX, 'Number of images. Default 1.');
const EDITED_MAX = 6;
const formatField = oneOf(IMAGE_FORMATS, 'File format of the images.');
const seedField = integerField(-1, SEED_MAX, 'The same seed gives the same images. -1 for a new one each time.');
export const userField = textField(
  1024,
  'Your identifier of the end user. The provider gets a digest of it that is different for each account.',
);
export const metadataField = objectField(
  `Key and value pairs for the logs, at most ${METADATA_BYTES_MAX} bytes as JSON. Not forwarded to the provider.`,
);

export const quoteIdField = {
  type: ['string', 'null'],
  maxLength: 64,
  description: 'A quote of this call: it costs what the quote says. Also the header `x-quote-id`.',
  [MUST_BE]: 'the id of a quote',
} as const;

/** Fields that both routes have. An offer takes the fields that it lists; see `takenBy` in image-wires.ts. */
const COMMON = {
  negative_prompt: textField(PROMPT_MAX, 'What the image must not show.'),
  aspect_ratio: {
    type: ['string', 'null'],
    pattern: '^[1-9][0-9]{0,3}:[1-9][0-9]{0,3}$',
    description: 'Width to height, such as `16:9`.',
    [MUST_BE]: 'a ratio such as 16:9',
  },
  resolution: {
    type: ['string', 'null'],
    pattern: '^[A-Za-z0-9]{1,16}$',
    description: 'Resolution tier, such as `1K`, `2K` or `4K`. It decides the price.',
    [MUST_BE]: 'a tier such as 1K, 2K or 4K',
  },
  style: textField(1024, 'How the image looks.'),
  style_preset: textField(256, 'The name of a style that the model knows.'),
  guide_scale: numberField(0, 50, 'How closely the image follows the prompt (also `guidance_scale`, `cfg_scale`).'),
  steps: integerField(1, 1000, 'Inference steps.'),
  hide_watermark: flagField('Make the image without a watermark.'),
  lora_strength: numberField(0, 100, 'Strength of the LoRA.'),
  safe_mode: flagField('Blur adult content.'),
  embed_exif_metadata: flagField('Write the prompt into the EXIF data of the image.'),
  enable_web_search: flagField('Search the web while the image is made.'),
  seed: seedField,
  user: userField,
  metadata: metadataField,
  quote_id: quoteIdField,
  ...routingFields,
} as const;

const STREAM = {
  stream: flagField('Answer events: partial images and then the image, or several images one after the other.'),
  partial_images: integerField(0, 3, 'Partial images of a stream at most. A stream of several images has none.'),
} as const;

const QUALITIES = ['low', 'medium', 'high', 'auto'];

/** The fields of `POST /image/generate`. */
export const generateFields = {
  model: modelField,
  prompt: promptField,
  n: countField,
  width: edgeField('Width'),
  height: edgeField('Height'),
  size: sizeField,
  quality: oneOf(QUALITIES, 'It may decide the price: see `/models?type=image`.'),
  output_format: formatField,
  output_type: oneOf(
    ['data_url', 'file'],
    '`data_url` answers JSON with the images as data URLs, `file` the bytes of the one image. Default `data_url`.',
  ),
  ...COMMON,
  ...STREAM,
} as const;

/** The fields of `POST /images/generations`. */
export const generationsFields = {
  model: modelField,
  prompt: promptField,
  n: countField,
  size: sizeField,
  quality: oneOf([...QUALITIES, 'standard', 'hd'], 'It may decide the price: see `/models?type=image`.'),
  output_format: formatField,
  response_format: oneOf(
    ['b64_json', 'url'],
    '`b64_json` answers base64, `url` the same as a data URL. Default `b64_json`.',
  ),
  background: oneOf(['transparent', 'opaque', 'auto'], 'Background of the image.'),
  moderation: oneOf(['low', 'auto'], 'How strictly the content is judged.'),
  output_compression: integerField(0, 100, 'Compression of JPEG and WebP in percent.'),
  ...COMMON,
  ...STREAM,
} as const;

/* The texts that bring a file: base64 with padding, a data URL, or an address. */
export const DATA_URL = 'data:[a-z0-9]+/[-+.a-z0-9]+;base64,';
export const BASE64 = '(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?';
export const ADDRESS = `^(?:https://\\S+|${DATA_URL}${BASE64})$`;
const IMAGE_RIGHT = 'an object with b64 (base64 or a data URL) or url (an https URL)';
const addressed = (about: string) => ({
  title: 'InputImage',
  type: ['object', 'string', 'null'],
  description: about,
  [MUST_BE]: IMAGE_RIGHT,
  properties: {
    b64: {
      type: ['string', 'null'],
      description: 'The file in base64, or as a data URL.',
      [DOCUMENTED]: { pattern: `^(?:${DATA_URL})?${BASE64}$` },
    },
    url: {
      type: ['string', 'null'],
      description: 'An https URL, which the gateway fetches, or a data URL.',
      [DOCUMENTED]: { pattern: ADDRESS },
    },
    image_url: {
      description: 'The same as `url`, as text or as `{"url": …}`.',
      [DOCUMENTED]: {
        allOf: [
          {
            anyOf: [
              { const: null },
              { type: 'string', pattern: ADDRESS },
              { type: 'object', required: ['url'], properties: { url: { type: 'string', pattern: ADDRESS } } },
            ],
          },
        ],
      },
    },
  },
  [DOCUMENTED]: {
    pattern: `^(?:https://\\S+|(?:${DATA_URL})?${BASE64})$`,
    allOf: [
      {
        anyOf: [
          { not: { type: 'object' } },
          ...['b64', 'url', 'image_url'].map((name, at, all) => ({
            allOf: [hasValue(name), { not: { anyOf: all.filter((other) => other !== name).map(hasValue) } }],
          })),
        ],
      },
    ],
  },
});

/** Further fields of an edit, besides those of a generation. */
const EDIT = {
  images: {
    type: 'array',
    minItems: 1,
    maxItems: INPUT_IMAGES_MAX,
    items: {
      ...addressed('An image: PNG, JPEG or WebP, at most 20 MiB and 50 megapixels.'),
      type: ['object', 'string'],
    },
    description: `The images to edit, 1 to ${INPUT_IMAGES_MAX}. The first one is the base.`,
    [MUST_BE]: `a list of 1 to ${INPUT_IMAGES_MAX} images`,
  },
  mask: addressed('The part to edit is transparent in it.'),
} as const;

/** The fields of `POST /image/edit`. */
export const editFields = {
  ...generateFields,
  ...EDIT,
  n: integerField(1, EDITED_MAX, 'Number of images. Default 1.'),
  prompt_extend: flagField('Extend the prompt.'),
  watermark: flagField('Add a watermark.'),
} as const;

/** The fields of `POST /images/edits`. */
export const editsFields = {
  ...generationsFields,
  ...EDIT,
  input_fidelity: oneOf(['high', 'low'], 'How closely the images are kept.'),
} as const;

/** The fields of `POST /images`. */
export const openrouterFields = {
  ...COMMON,
  ...STREAM,
  model: modelField,
  prompt: promptField,
  n: countField,
  size: {
    ...sizeField,
    pattern: '^(?:auto|512|[1-9][0-9]?K|[1-9][0-9]{1,3}x[1-9][0-9]{1,3})$',
    description: 'A tier such as `2K`, which is the same as `resolution`, or width and height, such as `1024x1024`.',
    [MUST_BE]: 'auto, a tier such as 2K, or a width and a height such as 1024x1024',
    [DOCUMENTED]: { pattern: `^(?:auto|512|[1-9][0-9]?K|${EDGE}x${EDGE})$` },
  },
  quality: oneOf(QUALITIES, 'It may decide the price: see `/models?type=image`.'),
  output_format: formatField,
  background: generationsFields.background,
  output_compression: generationsFields.output_compression,
  [REFERENCES]: {
    type: ['array', 'null'],
    maxItems: INPUT_IMAGES_MAX,
    items: EDIT.images.items,
    description: `Images to begin with, at most ${INPUT_IMAGES_MAX}, such as \`{"type":"image_url","image_url":{"url":…}}\`.`,
    [MUST_BE]: `a list of at most ${INPUT_IMAGES_MAX} images`,
  },
} as const;

export const generateQuoteFields = { ...generateFields, prompt: { ...promptField, minLength: 0 } } as const;

/** The fields of `POST /image/edit/quote`: those of the call, with the number of images instead of the images. */
export const editQuoteFields = {
  ...editFields,
  prompt: { ...promptField, minLength: 0 },
  image_count: integerField(
    1,
    INPUT_IMAGES_MAX,
    'Number of images to edit. Default that of `images`, or 1. A mask that is not sent with the quote counts as one.',
  ),
} as const;

/** Blue, 16 x 16 pixels. */
const SMALL_PNG =
  'data:image/png;base64,' +
  'iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mOI6jlBEmIY1TCqYfhqAAArnq4QbIHYuAAAAABJRU5ErkJggg==';

const has = (name: string, schema: object) => ({ required: [name], properties: { [name]: schema } });

/** Returns the rules that join the fields of a body, for the reference. */
function rulesOf(fields: Readonly<Record<string, object>>): readonly object[] {
  const sizeRule = has('size', { type: 'string', not: { const: 'auto' } });
  return [
    onlyIf(has('partial_images', { minimum: 1 }), has('stream', { enum: [true] })),
    { not: { allOf: [hasValue('resolution'), { anyOf: [hasValue('width'), sizeRule] }] } },
    ...('width' in fields ? [onlyTogether('width', 'height'), { not: { allOf: [hasValue('width'), sizeRule] } }] : []),
    ...('output_type' in fields
      ? [
          onlyIf(has('output_type', { const: 'file' }), {
            not: { anyOf: [has('stream', { enum: [true] }), has('n', { minimum: 2 })] },
          }),
        ]
      : []),
  ];
}

export const bodySchema = (
  title: string,
  fields: Readonly<Record<string, object>>,
  required: readonly string[] = ['prompt'],
) => ({
  title,
  type: 'object',
  ...(required.length === 0 ? {} : { required }),
  anyOf: [
    { required: ['model'], properties: { model: { [MUST_BE]: MODEL_RIGHT } } },
    { required: ['models'], properties: { models: { type: 'array', minItems: 1, [MUST_BE]: MODEL_RIGHT } } },
  ],
  additionalProperties: true,
  [MUST_BE]: 'a JSON object',
  examples: [
    required.includes('images')
      ? { model: 'demo/image', prompt: 'Lower the bar', images: [{ url: SMALL_PNG }] }
      : { model: 'demo/image', prompt: 'A tollgate in the morning' },
  ],
  properties: fields,
  [DOCUMENTED]: { allOf: rulesOf(fields) },
});

export function editFormSchema(all: Readonly<Record<string, object>>) {
  const { images: _, ...fields } = all;
  return formSchema({
    properties: fields,
    required: ['prompt', 'image'],
    files: { image: 'An image to edit. Send it once for each image.', mask: 'The part to edit is transparent in it.' },
    several: ['image'],
    example: { model: 'demo/image', prompt: 'Lower the bar', image: ['(the bytes of a PNG, JPEG or WebP file)'] },
  });
}
