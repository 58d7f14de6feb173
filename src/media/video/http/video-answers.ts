import { GatewayError } from '#errors';
import type { Task } from '#tasks';
import type { ReplySink } from '#http';
import { onceSettled, type StartedProviderCall, spentOn } from '#call';
import type { BegunVideo } from '../run/make-videos.ts';
import type { VideoView } from '../run/video-view.ts';
import { notesOf, toVideoId, type VideoNotes } from '../video-task.ts';

const STATUS = { queued: 'queued', generating: 'in_progress', completed: 'completed', failed: 'failed' } as const;

const seconds = (at: number) => Math.floor(at / 1000);

const common = (id: string, { model, seconds: length, size }: VideoNotes, created: number) => ({
  id,
  object: 'video',
  model,
  created_at: created,
  seconds: String(length),
  size,
  prompt: null,
  remixed_from_video_id: null,
});

/** A video that was just begun, in the shape of OpenAI's API. */
export const begunVideo = ({ id, notes, callbackSecret }: BegunVideo, created: number): object => ({
  ...common(id, notes, created),
  status: 'queued',
  progress: 0,
  completed_at: null,
  expires_at: null,
  error: null,
  ...(callbackSecret === undefined ? {} : { callback_secret: callbackSecret }),
});

/**
 * A video in the shape of OpenAI's API. A video whose files are no longer stored is `completed`, and its
 * `expires_at` is in the past.
 */
export function openaiVideo(task: Task, view: VideoView): object {
  const { createdAt, updatedAt } = task;
  const files = view.status === 'completed' ? view.files : [];
  const expires = files.map(({ expiresAt }) => expiresAt);
  const isOver = view.status === 'completed' || view.status === 'expired';
  return {
    ...common(toVideoId(task), notesOf(task), seconds(createdAt)),
    status: STATUS[view.status === 'expired' ? 'completed' : view.status],
    progress: 'progress' in view ? view.progress.percent : isOver ? 100 : 0,
    completed_at: isOver ? seconds(updatedAt) : null,
    expires_at:
      view.status === 'expired' ? seconds(updatedAt) : expires.length > 0 ? seconds(Math.min(...expires)) : null,
    error: view.status === 'failed' ? view.error : null,
    ...(files.length > 1 ? { variants: files.length } : {}),
  };
}

/** Writes the answer to a request for videos, after its task is stored. Throws the errors of the call. */
export const writeBegun = (
  started: StartedProviderCall<BegunVideo>,
  answerOf: (begun: BegunVideo, created: number) => { readonly status: 200 | 202; readonly body: object },
  sink: ReplySink,
  onError: (error: unknown) => void,
): Promise<boolean> =>
  onceSettled(started, sink, onError, (settled) => {
    if (settled.result === null) throw new GatewayError('provider_unavailable', 'The work did not begin in time');
    const { id, call } = started;
    const { status, body } = answerOf(settled.result, Math.floor(call.startedAt / 1000));
    const text = JSON.stringify(body);
    sink.head(status, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(text),
      'x-generation-id': id,
      'x-provider': settled.providerName,
      'x-task-status': 'queued',
    });
    sink.end(text);
    // A pending call is charged when the videos are here.
    return settled.pending === true || spentOn(settled) > 0n;
  });

const text = (description: string) => ({ type: 'string', description });
const textOrNull = (description: string) => ({ type: ['string', 'null'], description });
const whole = (description: string) => ({ type: ['integer', 'null'], description });

const errorSchema = {
  title: 'VideoFailure',
  type: ['object', 'null'],
  description: 'Why it failed. Nothing is charged then.',
  properties: { code: text('A word, such as `content_policy`.'), message: text('The same for people.') },
};

export const queuedSchema = {
  title: 'QueuedVideo',
  type: 'object',
  required: ['id', 'created', 'status', 'variants_expected'],
  properties: {
    id: text('The id of the task, for `/video/retrieve`.'),
    created: { type: 'integer', description: 'Epoch seconds.' },
    status: { type: 'string', enum: ['queued'] },
    variants_expected: { type: 'integer', description: 'Videos that are made.' },
    callback_secret: text(
      'Key that signs the messages to `callback_url`. It is the same for all videos of an account, and another one for those of each restricted key.',
    ),
  },
};

export const statusSchema = {
  title: 'VideoProgress',
  type: 'object',
  required: ['id', 'status'],
  properties: {
    id: text('The id of the task.'),
    status: { type: 'string', enum: ['queued', 'generating', 'completed', 'failed'] },
    progress: { type: 'number', description: '0 to 100. An estimate if the provider does not report it.' },
    estimated_seconds: {
      type: 'number',
      description: 'Estimated time until the end, from the time that other videos took.',
    },
    error: errorSchema,
    files: {
      type: 'array',
      description: 'For a finished task, if the client accepts only JSON.',
      items: {
        type: 'object',
        required: ['index', 'url', 'bytes', 'sha256'],
        properties: {
          index: { type: 'integer' },
          url: text('Address of the file.'),
          bytes: { type: 'integer' },
          sha256: text('Hex digits.'),
        },
      },
    },
    provider_metadata: {
      type: 'object',
      properties: {
        provider: text('Name of the provider that makes it.'),
        raw: { type: 'object', description: 'What the provider said.' },
      },
    },
  },
};

export const videoSchema = {
  title: 'Video',
  type: 'object',
  properties: {
    id: text('The same id as that of `/video/queue`.'),
    object: { type: 'string', enum: ['video'] },
    model: text('The name that was called.'),
    status: { type: 'string', enum: ['queued', 'in_progress', 'completed', 'failed'] },
    progress: { type: 'number', description: '0 to 100.' },
    created_at: whole('Epoch seconds.'),
    completed_at: whole('Epoch seconds.'),
    expires_at: whole('Epoch seconds until which the file can be fetched.'),
    seconds: text('Length that was asked for.'),
    size: text('Width and height.'),
    prompt: textOrNull('Always null, because prompts are not stored.'),
    error: errorSchema,
    remixed_from_video_id: textOrNull('Always null.'),
    variants: { type: 'integer', description: 'Number of files, if there are several.' },
  },
};

export const openrouterVideoSchema = {
  title: 'OpenRouterVideo',
  type: 'object',
  required: ['id', 'polling_url', 'status'],
  properties: {
    id: text('The same id as that of `/video/queue`.'),
    generation_id: text('The id of the call, for `/generation`.'),
    polling_url: text(
      'Address that shows the state of the video. A path where the gateway does not know its own address.',
    ),
    status: { type: 'string', enum: ['pending', 'in_progress', 'completed', 'failed', 'cancelled', 'expired'] },
    unsigned_urls: {
      type: 'array',
      items: { type: 'string' },
      description: 'Addresses of the files of a finished video. They need the key, too.',
    },
    error: text('Why it failed. Nothing is charged then.'),
    usage: {
      type: 'object',
      description: 'For a finished video.',
      properties: { cost: { type: 'number', description: 'USD.' }, is_byok: { type: 'boolean', const: false } },
    },
  },
};

const file = { type: 'string', format: 'binary' };

export const fileAnswer = {
  description: 'The file: of one video, or a ZIP archive of several.',
  content: { 'video/mp4': { schema: file }, 'application/zip': { schema: file } },
};

export const statusOrFile = {
  description: 'How the task stands, or its file.',
  content: { 'application/json': { schema: statusSchema }, ...fileAnswer.content },
};
