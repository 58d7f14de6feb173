const number = (description: string) => ({ type: ['number', 'null'], description });
const text = (description: string) => ({ type: 'string', description });

const usageSchema = {
  title: 'ImageUsage',
  type: 'object',
  description: 'Images that are charged, and what they cost.',
  properties: {
    images: {
      type: 'integer',
      description: 'Images that arrived. The cost is lower if there are fewer than requested.',
    },
    cost: { type: 'number', description: 'USD.' },
    cost_details: {
      type: 'object',
      properties: { charged_usd: text('USD, exact.'), fee_usd: text('The part of the cost that the gateway keeps.') },
    },
  },
};

/** The answer of `POST /image/generate` with `output_type: data_url`. */
export const generateAnswerSchema = {
  title: 'GeneratedImages',
  type: 'object',
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
          seed: number('The seed that the provider reported, else the requested seed; null for none.'),
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

/** The answer of `POST /image/edit` with `output_type: data_url`. */
export const editAnswerSchema = {
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

/** The answer of `POST /images/generations`. */
export const generationsAnswerSchema = {
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
        input_tokens: { type: 'integer', description: '0 if the provider counts none. Nothing is charged by tokens.' },
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

/** The answer of `POST /images`. */
export const openrouterAnswerSchema = {
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

const file = { type: 'string', format: 'binary' };

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
      ? Object.fromEntries(['image/png', 'image/jpeg', 'image/webp'].map((type) => [type, { schema: file }]))
      : {}),
  },
});
