import { type Dialect, GatewayError } from '#wire';
import { type Answer, dataUrlAnswer, fileAnswer, openaiAnswer, openrouterAnswer } from './image-answer.ts';
import {
  editAnswerSchema,
  generateAnswerSchema,
  generationsAnswerSchema,
  openrouterAnswerSchema,
} from './image-schema.ts';
import { openaiUsage, openrouterUsage, ownUsage, type UsageForm } from './image-usage.ts';
import type { EventForm, ImageBody } from './request/image-ask.ts';
import {
  bodySchema,
  editFields,
  editFormSchema,
  editsFields,
  generateFields,
  generationsFields,
  openrouterFields,
} from './request/image-fields.ts';
import { fromOpenrouter, refuseOtherImages, REFERENCES } from './request/openrouter-image.ts';

/** One way to ask for images. */
export interface ImageRoute {
  readonly path: string;
  readonly schema: ReturnType<typeof bodySchema>;
  /** The same body as a form, if it may be one. */
  readonly form?: object;
  readonly answerSchema: object;
  readonly described: { readonly summary: string; readonly operationId: string; readonly description: string };
  /** Whether its requests contain images. Default: no. */
  readonly edits?: true | 'if given';
  /** Its name of the images. Default: `images`. */
  readonly imagesIn?: string;
  /** Turns a parsed body into one with the gateway's names. */
  toOwn?(value: unknown): unknown;
  /** The address for requests with images, if this one takes none. */
  readonly editsAt?: string;
  /** Its errors have a word as `code`. Default: errors as in chat. */
  readonly ownErrors?: true;
  readonly events: EventForm;
  /** The member `usage` of the events. */
  readonly usage: UsageForm;
  /** The dialect of an error in a stream. Default: that of the address. */
  readonly streamDialect?: Dialect;
  answerOf(body: ImageBody): Answer;
  /** Throws GatewayError for a checked body whose fields contradict each other. */
  refuse?(body: ImageBody): void;
}

const BILLED =
  'The price is known before the call: a price per image, by resolution tier and quality. It is locked, and the images that arrive are charged. ';

/** The routes of the gateway's own API. */
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

/** The routes that answer in the form of OpenAI's API. */
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
