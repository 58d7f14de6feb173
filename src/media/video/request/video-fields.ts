import { DOCUMENTED, hasValue, MUST_BE, nameSchema, notTogether } from '#http';
import { routingFields } from '#call';
import {
  ADDRESS,
  BASE64,
  DATA_URL,
  flagField,
  integerField,
  metadataField,
  oneOf,
  PROMPT_MAX,
  quoteIdField,
  SEED_MAX,
  textField,
  userField,
} from '../../request/image-fields.ts';

/* The fields of requests for videos. A field that is null counts as absent, because clients send either. */

export const VIDEOS_MAX = 4;
export const REFERENCES_MAX = 4;
const SECONDS_MAX = 3600;
const RESOLUTIONS = ['480p', '720p', '1080p', '4k'] as const;
export const REFERENCES_RIGHT = `an array of at most ${REFERENCES_MAX} https URLs or data URLs`;
const MODEL_RIGHT = 'the name of a video model: 1 to 256 characters without control characters';

const modelField = {
  ...nameSchema,
  description:
    'The name of a video model, optionally with `:floor` (cheapest provider) or `:nitro` (fastest), or the direct form `<provider_pubkey>:<model_name>`.',
  [MUST_BE]: MODEL_RIGHT,
};

const IS_ADDRESS = { type: 'string', pattern: ADDRESS };
/** An input as text, `{"url": …}` or `{"b64": …}`. */
const IS_INPUT = {
  anyOf: [
    { const: null },
    IS_ADDRESS,
    { type: 'object', required: ['url'], properties: { url: IS_ADDRESS } },
    {
      type: 'object',
      required: ['b64'],
      properties: { b64: { type: 'string', pattern: `^(?:${DATA_URL})?${BASE64}$` } },
      not: hasValue('url'),
    },
  ],
};
const oneInput = { type: ['string', 'object', 'null'], [DOCUMENTED]: { allOf: [IS_INPUT] } };
const inputField = (about: string) => ({
  ...oneInput,
  description: `${about} An https URL or a data URL, as text or as \`{"url": …}\` or \`{"b64": …}\`.`,
  [MUST_BE]: 'an https URL or a data URL, as text, {"url": …} or {"b64": …}',
});

/** An edge in pixels as text, up to 4096. */
const EDGE = '(?:[1-9][0-9]{1,2}|[1-3][0-9]{3}|40(?:[0-8][0-9]|9[0-6]))';

const COMMON = {
  prompt: textField(PROMPT_MAX, 'What the video shows. It may be omitted if `image_url` is given.'),
  n: integerField(1, VIDEOS_MAX, `Number of variants. Default 1. More than ${VIDEOS_MAX} are refused with 422.`),
  negative_prompt: textField(PROMPT_MAX, 'What the video must not show.'),
  resolution: oneOf(RESOLUTIONS, 'It decides the price of a second.'),
  aspect_ratio: {
    type: ['string', 'null'],
    pattern: '^[1-9][0-9]{0,3}:[1-9][0-9]{0,3}$',
    description: 'Width to height, such as `16:9`.',
    [MUST_BE]: 'a ratio such as 16:9',
  },
  size: {
    type: ['string', 'null'],
    pattern: '^[1-9][0-9]{1,3}x[1-9][0-9]{1,3}$',
    description:
      'Width and height in pixels, such as `1280x720`. The price is that of the lowest resolution with as many pixels.',
    [MUST_BE]: 'a width and a height such as 1280x720',
    [DOCUMENTED]: { pattern: `^${EDGE}x${EDGE}$` },
  },
  frame_rate: integerField(1, 240, 'Frames per second.'),
  generate_audio: flagField('Make sound, too. It may change the price of a second.'),
  audio_prompt: textField(PROMPT_MAX, 'What the sound is.'),
  camera_fixed: flagField('The camera does not move.'),
  watermark: flagField('Add a watermark.'),
  seed: integerField(-1, SEED_MAX, 'The same seed gives the same video. -1 for a new one each time.'),
  callback_url: {
    ...textField(2048, 'An https address that gets a signed message when the task ends.'),
    [DOCUMENTED]: { format: 'uri', pattern: '^https://' },
  },
  user: userField,
  metadata: metadataField,
  quote_id: quoteIdField,
  ...routingFields,
} as const;

/** The fields of a video request from another protocol. Without a length, the first one that the model lists counts. */
export const describedFields = {
  model: modelField,
  duration: {
    title: 'VideoDuration',
    type: ['string', 'integer', 'null'],
    minimum: 1,
    maximum: SECONDS_MAX,
    pattern: '^[1-9][0-9]{0,3}s?$',
    description: 'Length, such as `5s`. It decides the price.',
    [MUST_BE]: 'a length such as 5s',
  },
  image_url: inputField('The first frame.'),
  end_image_url: inputField('The last frame.'),
  video_url: inputField('A video to begin with.'),
  audio_url: inputField('Sound to begin with.'),
  reference_image_urls: {
    type: ['array', 'null'],
    maxItems: REFERENCES_MAX,
    items: { ...oneInput, [MUST_BE]: 'an https URL or a data URL' },
    description: `Up to ${REFERENCES_MAX} pictures of what is to appear.`,
    [MUST_BE]: REFERENCES_RIGHT,
  },
  ...COMMON,
} as const;

/** The fields of `POST /video/queue`. */
export const queueFields = {
  ...describedFields,
  duration: { ...describedFields.duration, type: ['string', 'integer'] },
} as const;

const pictureField = {
  type: ['string', 'object'],
  [DOCUMENTED]: { allOf: [IS_INPUT] },
  description: 'An https URL or a data URL, as text or as `{"url": …}`.',
  [MUST_BE]: 'an https URL or a data URL, as text or {"url": …}',
};

/** The fields of `POST /videos`. */
export const videosFields = {
  model: modelField,
  seconds: {
    type: ['string', 'integer', 'null'],
    minimum: 1,
    maximum: SECONDS_MAX,
    pattern: '^[1-9][0-9]{0,3}$',
    description: 'Length in seconds. Default: the first that the model lists.',
    [MUST_BE]: 'a number of seconds such as "4"',
  },
  input_reference: inputField('The first frame; a file, where the request is a form.'),
  duration: {
    ...describedFields.duration,
    description: 'OpenRouter’s name of `seconds`. The answer is then in the shape of OpenRouter’s API.',
  },
  frame_images: {
    type: ['array', 'null'],
    maxItems: 2,
    items: {
      type: 'object',
      required: ['frame_type', 'image_url'],
      properties: { frame_type: { type: 'string', enum: ['first_frame', 'last_frame'] }, image_url: pictureField },
    },
    description: 'The first and the last frame, as in OpenRouter’s API.',
    [MUST_BE]: 'a list of at most two objects with frame_type (first_frame or last_frame) and image_url',
    [DOCUMENTED]: {
      allOf: ['first_frame', 'last_frame'].map((frame) => ({
        not: { type: 'array', minItems: 2, items: { properties: { frame_type: { const: frame } } } },
      })),
    },
  },
  input_references: {
    type: ['array', 'null'],
    maxItems: REFERENCES_MAX + 2,
    items: {
      title: 'VideoReference',
      type: 'object',
      required: ['type'],
      properties: {
        type: { type: 'string', [DOCUMENTED]: { enum: ['image_url', 'video_url', 'audio_url'] } },
        image_url: pictureField,
        video_url: { ...pictureField, description: 'The same for a video.' },
        audio_url: { ...pictureField, description: 'The same for sound.' },
      },
      [DOCUMENTED]: {
        allOf: [
          {
            anyOf: ['image_url', 'video_url', 'audio_url'].map((name) => ({
              required: [name],
              properties: { type: { const: name } },
            })),
          },
        ],
      },
    },
    description: 'Pictures, a video or sound to begin with, as in OpenRouter’s API.',
    [MUST_BE]: 'a list of objects with a type (image_url, video_url or audio_url) and a member of that name',
  },
  ...COMMON,
} as const;

const PROMPT = { required: ['prompt'], properties: { prompt: { type: 'string', minLength: 1 } } };
const BEGINS_WITH_FRAME = {
  required: ['frame_images'],
  properties: {
    frame_images: { type: 'array', contains: { properties: { frame_type: { const: 'first_frame' } } } },
  },
};

export const VIDEO_RULES = [notTogether('resolution', 'size')];
/** The same with those of a call of `/video/queue`, which makes a video. */
export const QUEUE_RULES = [...VIDEO_RULES, { anyOf: [PROMPT, hasValue('image_url')] }];
export const VIDEOS_RULES = [
  ...VIDEO_RULES,
  { anyOf: [PROMPT, hasValue('input_reference'), BEGINS_WITH_FRAME] },
  notTogether('seconds', 'duration'),
  { not: { allOf: [hasValue('input_reference'), BEGINS_WITH_FRAME] } },
];

/**
 * The JSON schema of a body with these fields. `rules`: what they say of each other. `required`: the fields that it
 * must have besides the model.
 */
export const videoBodySchema = (
  title: string,
  fields: Readonly<Record<string, object>>,
  example: object,
  rules: readonly object[] = [],
  required: readonly string[] = [],
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
  examples: [example],
  properties: fields,
  [DOCUMENTED]: { allOf: rules },
});
