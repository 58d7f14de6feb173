import type { Dialect } from '#http';
import { GatewayError } from '#errors';
import {
  type ImageAnswerForm,
  dataUrlAnswer,
  fileAnswer,
  openaiAnswer,
  openrouterAnswer,
  openaiUsage,
  openrouterUsage,
  ownUsage,
  type UsageForm,
} from './image-answer.ts';
import type { EventForm } from './request/image-ask.ts';
import {
  type ImageBody,
  bodySchema,
  editFields,
  editFormSchema,
  editsFields,
  generateFields,
  generationsFields,
  openrouterFields,
  fromOpenrouter,
  refuseOtherImages,
  REFERENCES,
} from './request/image-fields.ts';

const numberOrNull = (description: string) => ({ type: ['number', 'null'], description });
const text = (description: string) => ({ type: 'string', description });

const usageSchema = {
  title: 'ImageUsage',
  type: 'object',
  required: ['images', 'cost'],
  description: 'Images that are charged, and what they cost.',
  properties: {
    images: {
      type: 'integer',
      description: 'Images that arrived. The cost is lower if there are fewer than requested.',
    },
    prompt_tokens: {
      type: 'integer',
      description: 'Tokens of words that are charged, of a model with a price for them.',
    },
    cost: { type: 'number', description: 'USD.' },
    cost_details: {
      type: 'object',
      properties: { charged_usd: text('USD, exact.'), fee_usd: text('The part of the cost that the gateway keeps.') },
    },
  },
};

const generateAnswerSchema = {
  title: 'GeneratedImages',
  type: 'object',
  required: ['id', 'created', 'model', 'status', 'images', 'usage'],
  properties: {
    id: text('The id of the call, for `/generation`.'),
    created: { type: 'integer', description: 'Epoch seconds.' },
    model: text('The name that was called.'),
    status: { type: 'string', enum: ['completed'] },
    images: {
      type: 'array',
      items: {
        title: 'GeneratedImage',
        type: 'object',
        properties: {
          index: { type: 'integer' },
          data_url: text('The image as a data URL in base64.'),
          width: { type: 'integer', description: 'Pixels, as the file says.' },
          height: { type: 'integer', description: 'Pixels, as the file says.' },
          format: { type: 'string', enum: ['png', 'jpeg', 'webp'], description: 'As the file says.' },
          seed: numberOrNull('The seed that the provider reported, else the requested seed; null for none.'),
          revised_prompt: text('The prompt as the provider changed it.'),
        },
      },
    },
    provider_metadata: {
      type: 'object',
      properties: {
        provider: text('The name of the provider that served.'),
        raw: { type: 'object', description: 'Text that the provider sent with the images.' },
      },
    },
    usage: usageSchema,
  },
};

const editAnswerSchema = {
  ...generateAnswerSchema,
  title: 'EditedImages',
  properties: {
    ...generateAnswerSchema.properties,
    input_images: {
      type: 'array',
      description: 'The images that were edited, in their order.',
      items: {
        type: 'object',
        properties: { width: { type: 'integer' }, height: { type: 'integer' } },
      },
    },
  },
};

const generationsAnswerSchema = {
  title: 'OpenAiImages',
  type: 'object',
  properties: {
    created: { type: 'integer', description: 'Epoch seconds.' },
    data: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          b64_json: text('The image in base64.'),
          url: text('The image as a data URL, where `response_format` is `url`.'),
          revised_prompt: text('The prompt as the provider changed it.'),
        },
      },
    },
    output_format: { type: 'string', enum: ['png', 'jpeg', 'webp'], description: 'As the first file says.' },
    size: text('Width and height of the first image in pixels, such as `1024x1024`.'),
    usage: {
      ...usageSchema,
      title: 'OpenAiImageUsage',
      properties: {
        ...usageSchema.properties,
        input_tokens: { type: 'integer', description: '0 if the provider counts none. `prompt_tokens` are charged.' },
        input_tokens_details: {
          type: 'object',
          properties: { image_tokens: { type: 'integer' }, text_tokens: { type: 'integer' } },
        },
        output_tokens: { type: 'integer' },
        total_tokens: { type: 'integer' },
      },
    },
  },
};

const openrouterUsageSchema = {
  title: 'OpenRouterImageUsage',
  type: 'object',
  required: ['prompt_tokens', 'completion_tokens', 'total_tokens', 'cost'],
  properties: {
    prompt_tokens: { type: 'integer', description: '0 if the provider counts none. Nothing is charged by tokens.' },
    completion_tokens: { type: 'integer' },
    total_tokens: { type: 'integer' },
    images: usageSchema.properties.images,
    cost: usageSchema.properties.cost,
    is_byok: { type: 'boolean', const: false },
    cost_details: {
      type: 'object',
      properties: {
        ...usageSchema.properties.cost_details.properties,
        upstream_inference_prompt_cost: { type: 'number', description: 'Always 0.' },
        upstream_inference_completions_cost: { type: 'number', description: 'The same as `cost`.' },
      },
    },
  },
};

const openrouterAnswerSchema = {
  title: 'OpenRouterImages',
  type: 'object',
  required: ['created', 'data'],
  properties: {
    created: { type: 'integer', description: 'Epoch seconds.' },
    data: {
      type: 'array',
      items: {
        type: 'object',
        properties: { b64_json: text('The image in base64.'), media_type: text('Such as `image/png`.') },
      },
    },
    usage: openrouterUsageSchema,
  },
};

const FILE = { type: 'string', format: 'binary' };

const eventSchema = {
  title: 'ImageEvent',
  type: 'object',
  description: 'The data of one event of a stream. An event with `error` ends a stream that failed.',
  required: ['type'],
  additionalProperties: true,
  properties: {
    type: text('Such as `image_generation.partial_image` or `image_generation.completed`.'),
    b64_json: text('The image in base64.'),
    partial_image_index: { type: 'integer' },
    usage: usageSchema,
  },
};

/** The answers of a route for images, for the reference. `files`: it can answer the file of an image. */
export const imageAnswerOf = (schema: object, files: boolean) => ({
  description: 'The images; with `stream`, its events.',
  content: {
    'application/json': { schema },
    'text/event-stream': { schema: eventSchema },
    ...(files
      ? Object.fromEntries(['image/png', 'image/jpeg', 'image/webp'].map((type) => [type, { schema: FILE }]))
      : {}),
  },
});

export interface ImageRoute {
  readonly path: string;
  readonly schema: ReturnType<typeof bodySchema>;
  readonly form?: object;
  readonly answerSchema: object;
  readonly described: { readonly summary: string; readonly operationId: string; readonly description: string };
  /** Whether its requests contain images. Default: no. */
  readonly edits?: true | 'if given';
  /** Its name of the images. Default: `images`. */
  readonly imagesIn?: string;
  toOwn?(value: unknown): unknown;
  /** The address for requests with images, if this one takes none. */
  readonly editsAt?: string;
  /** Its errors have a word as `code`. Default: errors as in chat. */
  readonly ownErrors?: true;
  readonly events: EventForm;
  readonly usage: UsageForm;
  /** Clients of OpenAI's API append its path to a base URL. */
  readonly clientsAppend?: true;
  /** The dialect of an error in a stream. Default: that of the address. */
  readonly streamDialect?: Dialect;
  answerOf(body: ImageBody): ImageAnswerForm;
  /** Throws GatewayError for a checked body whose fields contradict each other. */
  refuse?(body: ImageBody): void;
}

const BILLED =
  'The price is known before the call: a price per image, by resolution tier and quality. It is locked, and the images that arrive are charged. ';

const OWN: Pick<ImageRoute, 'ownErrors' | 'events' | 'usage' | 'answerOf' | 'refuse'> = {
  ownErrors: true,
  usage: ownUsage,
  events: { prefix: 'image_generation', partialImages: 2 },
  answerOf: ({ output_type: type }) => (type === 'file' ? fileAnswer : dataUrlAnswer),
  refuse({ output_type: type, n }) {
    if (type === 'file' && typeof n === 'number' && n > 1)
      throw new GatewayError('invalid_request', `output_type file has only one image: n must be 1, not ${n}`, {
        param: 'n',
      });
  },
};

const OPENAI: Pick<ImageRoute, 'events' | 'usage' | 'answerOf'> = {
  usage: openaiUsage,
  events: { prefix: 'image_generation', partialImages: 0 },
  answerOf: ({ response_format: format }) => openaiAnswer(format === 'url' ? 'url' : 'b64_json'),
};

const BRINGS_IMAGES = ['prompt', 'images'];

export const IMAGE_ROUTES: readonly ImageRoute[] = [
  {
    path: '/image/generate',
    schema: bodySchema('ImageRequest', generateFields),
    answerSchema: generateAnswerSchema,
    described: {
      summary: 'Generate images',
      operationId: 'generateImages',
      description:
        `Makes images of a prompt. ${BILLED}` +
        'With `output_type: file` the answer is the file of the one image. A field that no provider of the model takes is refused by its name (422).',
    },
    editsAt: '/image/edit',
    ...OWN,
  },
  {
    path: '/images/generations',
    clientsAppend: true,
    schema: bodySchema('OpenAiImageRequest', generationsFields),
    answerSchema: generationsAnswerSchema,
    described: {
      summary: 'Generate images in the shape of OpenAI’s API',
      operationId: 'createImages',
      description: `The same as \`/image/generate\`, for clients of OpenAI's API. ${BILLED}`,
    },
    editsAt: '/images/edits',
    ...OPENAI,
  },
  {
    path: '/image/edit',
    schema: bodySchema('ImageEditRequest', editFields, BRINGS_IMAGES),
    form: editFormSchema(editFields),
    answerSchema: editAnswerSchema,
    described: {
      summary: 'Edit images',
      operationId: 'editImages',
      description:
        `Makes images of a prompt and of the images that it comes with. ${BILLED}` +
        'Images come as base64, data URLs or https URLs, or as files of a form (`image`, `image[]`, `mask`).',
    },
    edits: true,
    ...OWN,
  },
  {
    path: '/images/edits',
    clientsAppend: true,
    schema: bodySchema('OpenAiImageEditRequest', editsFields, BRINGS_IMAGES),
    form: editFormSchema(editsFields),
    answerSchema: generationsAnswerSchema,
    described: {
      summary: 'Edit images in the shape of OpenAI’s API',
      operationId: 'createImageEdits',
      description: `The same as \`/image/edit\`, for clients of OpenAI's API: a form with files, or JSON. ${BILLED}`,
    },
    edits: true,
    ...OPENAI,
    events: { prefix: 'image_edit', partialImages: 0 },
  },
  {
    path: '/images',
    schema: bodySchema('OpenRouterImageRequest', openrouterFields),
    answerSchema: openrouterAnswerSchema,
    described: {
      summary: 'Generate and edit images in the shape of OpenRouter’s API',
      operationId: 'createOpenRouterImages',
      description:
        `The same as \`/image/generate\`, for clients of OpenRouter's API; with \`${REFERENCES}\` the same as \`/image/edit\`. ${BILLED}` +
        'With `stream`, a provider that streams no images is asked for a whole one.',
    },
    edits: 'if given',
    imagesIn: REFERENCES,
    toOwn: fromOpenrouter,
    refuse: refuseOtherImages,
    events: { prefix: 'image_generation', partialImages: 2, inOpenrouter: true },
    usage: openrouterUsage,
    // Its clients parse the code of an error in a stream as a text, and that of other errors as a number.
    streamDialect: 'openai',
    answerOf: () => openrouterAnswer,
  },
];
