import { formSchema } from '../../request/form-schema.ts';
import type { BegunVideo } from '../run/make-videos.ts';
import { QUEUE_RULES, queueFields, videoBodySchema, VIDEOS_RULES, videosFields } from '../request/video-fields.ts';
import { queuedSchema, videoSchema } from './video-schema.ts';
import { begunVideo } from './openai-video.ts';
import { begunInOpenrouter } from './openrouter-video.ts';

/** One way to ask for videos. */
export interface VideoRoute {
  readonly path: string;
  readonly fields: Readonly<Record<string, object>>;
  readonly schema: ReturnType<typeof videoBodySchema>;
  readonly answerSchema: object;
  readonly described: { readonly summary: string; readonly operationId: string; readonly description: string };
  /** Its errors have a word as `code`. Default: errors as in chat. */
  readonly ownErrors?: true;
  /** The same body as a form, if it may be one. */
  readonly form?: object;
  answerOf(begun: BegunVideo, created: number): object;
  /** The answer to a request in the form of OpenRouter's API. Absent if the route knows no such form. */
  inOpenrouter?(begun: BegunVideo, address: string): object;
}

const BILLED =
  'The price is known before the call: seconds × the price of a second in the resolution, and the base price of each video. It is locked until the videos arrive, and the videos that arrived are charged. ';

export const VIDEO_ROUTES: readonly VideoRoute[] = [
  {
    path: '/video/queue',
    fields: queueFields,
    schema: videoBodySchema(
      'VideoRequest',
      queueFields,
      { model: 'demo/projector', prompt: 'A tollgate in the morning', duration: '2s' },
      QUEUE_RULES,
      ['duration'],
    ),
    answerSchema: queuedSchema,
    described: {
      summary: 'Queue a video',
      operationId: 'queueVideo',
      description: `Starts making videos from a prompt or a picture. The answer is the id of a task: \`/video/retrieve\` shows how it stands, and gives the file. ${BILLED}A field that no provider of the model takes is refused by its name (422).`,
    },
    ownErrors: true,
    answerOf: ({ id, notes, callbackSecret }, created) => ({
      id,
      created,
      status: 'queued',
      variants_expected: notes.jobs.length,
      ...(callbackSecret === undefined ? {} : { callback_secret: callbackSecret }),
    }),
  },
  {
    path: '/videos',
    fields: videosFields,
    schema: videoBodySchema(
      'OpenAiVideoRequest',
      videosFields,
      { model: 'demo/projector', prompt: 'A tollgate in the morning', seconds: '2' },
      VIDEOS_RULES,
    ),
    answerSchema: videoSchema,
    described: {
      summary: 'Queue a video in the shape of OpenAI’s API',
      operationId: 'createVideo',
      description: `The same as \`/video/queue\`, for clients of OpenAI's API. A request with \`duration\`, \`frame_images\` or \`input_references\`, or of a client of OpenRouter's API, is answered in the shape of that API (202), but not below \`/v1\`. ${BILLED}`,
    },
    form: formSchema({
      properties: videosFields,
      required: ['model'],
      files: { input_reference: 'The first frame.' },
      example: { model: 'demo/projector', prompt: 'A tollgate in the morning', seconds: '2' },
    }),
    answerOf: (begun, created) => begunVideo(begun, created),
    inOpenrouter: ({ id, key }, address) => begunInOpenrouter(id, key.taskId, address),
  },
];
