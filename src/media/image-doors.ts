import { GatewayError } from '#wire';
import { type Answer, dataUrlAnswer, fileAnswer, openaiAnswer } from './image-answer.ts';
import { generateAnswerSchema, generationsAnswerSchema } from './image-schema.ts';
import type { ImageBody } from './request/image-ask.ts';
import { bodySchema, generateFields, generationsFields } from './request/image-fields.ts';

/** One way to ask for images. */
export interface ImageDoor {
  readonly path: string;
  readonly schema: ReturnType<typeof bodySchema>;
  readonly answerSchema: object;
  readonly described: { readonly summary: string; readonly operationId: string; readonly description: string };
  /** Its errors have a word as their `code`. Default: those of chat. */
  readonly ownErrors?: true;
  answerOf(body: ImageBody): Answer;
  /** Throws GatewayError for a checked body whose fields contradict each other. */
  refuse?(body: ImageBody): void;
}

const BILLED =
  'The price is known before the call: a price per image, by resolution tier and quality. It is locked, and the images that come are charged. ';

export const IMAGE_DOORS: readonly ImageDoor[] = [
  {
    path: '/image/generate',
    schema: bodySchema(generateFields),
    answerSchema: generateAnswerSchema,
    described: {
      summary: 'Generate images',
      operationId: 'generateImages',
      description:
        `Makes images of a prompt. ${BILLED}` +
        'With `output_type: file` the answer is the file of the one image. A field that no provider of the model takes is refused by its name (422).',
    },
    ownErrors: true,
    answerOf: ({ output_type: type }) => (type === 'file' ? fileAnswer : dataUrlAnswer),
    refuse({ output_type: type, n }) {
      if (type === 'file' && typeof n === 'number' && n > 1)
        throw new GatewayError('invalid_request', `output_type file is for one image: n must be 1, not ${n}`, {
          param: 'n',
        });
    },
  },
  {
    path: '/images/generations',
    schema: bodySchema(generationsFields),
    answerSchema: generationsAnswerSchema,
    described: {
      summary: 'Generate images in the shape of OpenAI’s API',
      operationId: 'createImages',
      description: `The same as \`/image/generate\`, for clients of OpenAI's API. ${BILLED}`,
    },
    answerOf: ({ response_format: format }) => openaiAnswer(format === 'url' ? 'url' : 'b64_json'),
  },
];
