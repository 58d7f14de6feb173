import { GatewayError } from '#wire';
import { type Answer, dataUrlAnswer, fileAnswer, openaiAnswer } from './image-answer.ts';
import { editAnswerSchema, generateAnswerSchema, generationsAnswerSchema } from './image-schema.ts';
import type { EventForm, ImageBody } from './request/image-ask.ts';
import {
  bodySchema,
  editFields,
  editFormSchema,
  editsFields,
  generateFields,
  generationsFields,
} from './request/image-fields.ts';

/** One way to ask for images. */
export interface ImageDoor {
  readonly path: string;
  readonly schema: ReturnType<typeof bodySchema>;
  /** The same body as a form, if it may be one. */
  readonly form?: object;
  readonly answerSchema: object;
  readonly described: { readonly summary: string; readonly operationId: string; readonly description: string };
  /** Its requests contain images. */
  readonly edits?: true;
  /** The address for requests with images, if this one takes none. */
  readonly editsAt?: string;
  /** Its errors have a word as `code`. Default: errors as in chat. */
  readonly ownErrors?: true;
  readonly events: EventForm;
  answerOf(body: ImageBody): Answer;
  /** Throws GatewayError for a checked body whose fields contradict each other. */
  refuse?(body: ImageBody): void;
}

const BILLED =
  'The price is known before the call: a price per image, by resolution tier and quality. It is locked, and the images that arrive are charged. ';

/** The doors of the gateway's own API. */
const OWN: Pick<ImageDoor, 'ownErrors' | 'events' | 'answerOf' | 'refuse'> = {
  ownErrors: true,
  events: { prefix: 'image_generation', partialImages: 2 },
  answerOf: ({ output_type: type }) => (type === 'file' ? fileAnswer : dataUrlAnswer),
  refuse({ output_type: type, n }) {
    if (type === 'file' && typeof n === 'number' && n > 1)
      throw new GatewayError('invalid_request', `output_type file has only one image: n must be 1, not ${n}`, {
        param: 'n',
      });
  },
};

/** The doors that answer in the form of OpenAI's API. */
const OPENAI: Pick<ImageDoor, 'events' | 'answerOf'> = {
  events: { prefix: 'image_generation', partialImages: 0 },
  answerOf: ({ response_format: format }) => openaiAnswer(format === 'url' ? 'url' : 'b64_json'),
};

const BRINGS_IMAGES = ['prompt', 'images'];

export const IMAGE_DOORS: readonly ImageDoor[] = [
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
    form: editFormSchema('ImageEditForm', editFields),
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
    form: editFormSchema('OpenAiImageEditForm', editsFields),
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
];
