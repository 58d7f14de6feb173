import type { GatewayError } from '#errors';
import { isObject } from '#wire';
import type { Config } from '#config';
import type { GeneratedAdapter, ReplyEnd } from '#call';
import type { Caller } from '#accounts';
import { type Catalog, descriptionOf, listedServices } from '#catalog';
import { createCheck } from '#http';
import {
  type CallEvent,
  type ContentResult,
  type EventBatch,
  type FilePart,
  NO_TASK,
  type TargetAdapter,
  eventBatch,
  lastOf,
  textDelta,
} from '#bridge';
import type { Blobs } from '#files';
import type { Task, Tasks } from '#tasks';
import { videoToCall } from './http/video-request.ts';
import type { Videos } from './create-videos.ts';
import { describedFields, videoBodySchema } from './request/video-fields.ts';
import { toVideoAsk, type VideoBody, withOwnVideoNames } from './request/video-ask.ts';
import { roomForVideos, type BegunVideo, createMakeVideos, type MakeVideosDeps } from './run/make-videos.ts';
import { billedSeconds, notesOf, toVideoId } from './video-task.ts';
import { unprocessable } from '../media-error.ts';

interface VideoTargetOptions {
  readonly catalog: Pick<Catalog, 'resolve' | 'offers' | 'knows'>;
  readonly config: Pick<Config, 'webhooks' | 'media'>;
  readonly videos: Pick<Videos, 'find' | 'wait' | 'view'>;
  readonly tasks: Pick<Tasks, 'admit' | 'begin'>;
  readonly blobs: Pick<Blobs, 'admit' | 'takeRoom' | 'giveRoomBack'>;
  readonly callbacks: MakeVideosDeps['callbacks'];
  readonly fetchInputs: MakeVideosDeps['fetchInputs'];
  /** The address at which clients reach this gateway; null if it is not known. */
  readonly ownUrl: () => string | null;
  readonly now: () => number;
}

/**
 * Lets the routes of other protocols call video models, with parts as request and reply. The text of the last turn is
 * the prompt, and its first image is the first frame. The answer is the URL of the file, once the file is here. If
 * the call ends before that, the answer has the id of the task.
 */
export function createVideoTarget(options: VideoTargetOptions): TargetAdapter {
  const { catalog, config, tasks, blobs, callbacks, fetchInputs, now } = options;
  const making: MakeVideosDeps = {
    tasks,
    blobs,
    callbacks,
    fetchInputs,
    now,
    ttlMs: config.media.videoTtlMs,
    fetchMs: config.media.downloadTimeoutMs,
  };
  const check = createCheck<VideoBody>(videoBodySchema('SpokenVideoRequest', describedFields, {}));
  return {
    primitive: 'video',
    has: (name) => catalog.knows(name, 'video'),
    list: (limit) => listedServices(catalog.offers('video'), limit),
    async about(name) {
      const { offers } = catalog.resolve(name, 'video');
      const [first] = offers;
      if (first === undefined) return null;
      return {
        displayName: first.displayName,
        description: descriptionOf(offers),
        offers,
        inputModes: ['text/plain', 'image/*'],
        outputModes: ['video/mp4'],
      };
    },
    async toCall(name, { turns, arguments: args, stream }, { caller, requestId, traceparent, wantsReceipt }) {
      catalog.resolve(name, 'video');
      const { prompt, files } = lastOf(turns);
      if (prompt === '' && files.length === 0)
        throw unprocessable('messages', `${name} needs a text that describes the video`);
      const image = files.length === 0 ? {} : { image_url: urlOf(files[0]!) };
      const more = isObject(args) ? args : {};
      const body = check(withOwnVideoNames({ ...more, model: name, prompt, ...image }, new Set()));
      const ask = await toVideoAsk(body, caller.account, config.webhooks.allowPrivate);
      const described = describedVideo(createMakeVideos(making, ask, { requestId, network: null }), options, caller);
      const context = { caller, payment: null, requestId, headers: {}, receipts: 'on-request' } as const;
      const room = caller.anonymous ? {} : { room: roomForVideos(tasks, blobs, ask) };
      return { ...videoToCall(body, ask, described, context), ...room, stream, traceparent, wantsReceipt };
    },
  };
}

const urlOf = ({ url, bytes, mediaType }: FilePart): string =>
  url ?? `data:${mediaType ?? 'image/png'};base64,${bytes ?? ''}`;

/**
 * Makes the video, and waits for its end. Once the task has begun, the task settles the lock, so no later error
 * fails the call.
 */
function describedVideo(
  native: GeneratedAdapter<BegunVideo, never>,
  { videos, ownUrl }: Pick<VideoTargetOptions, 'videos' | 'ownUrl'>,
  caller: Caller,
): GeneratedAdapter<ContentResult, EventBatch> {
  return {
    begin: (call) => native.begin?.(call),
    startAttempt: (offer, send, signal, detached) => {
      const making = native.startAttempt(offer, send, signal, detached);
      return madeAndShown(making, (id) => untilOver(videos, id, caller, signal, ownUrl() ?? ''));
    },
  };
}

async function* madeAndShown(
  making: AsyncGenerator<never, ReplyEnd<BegunVideo>, undefined>,
  show: (id: string) => AsyncGenerator<EventBatch, End, undefined>,
): AsyncGenerator<EventBatch, ReplyEnd<ContentResult>, undefined> {
  const begun = yield* making;
  const end = yield* show(begun.result.id);
  return { ...begun, ...end };
}

type End = Pick<ReplyEnd<ContentResult>, 'usage' | 'outcome' | 'finishReason' | 'result'>;

async function* untilOver(
  videos: VideoTargetOptions['videos'],
  id: string,
  caller: Caller,
  signal: AbortSignal,
  base: string,
): AsyncGenerator<EventBatch, End, undefined> {
  try {
    let task = await videos.find(id, caller);
    while (task.live && !signal.aborted) {
      yield batchOf({ type: 'progress', text: task.state });
      task = await videos.wait(task, signal);
    }
    const view = task.live ? null : await videos.view(task);
    if (view?.status === 'failed') return failed(view.error.message, view.error.code);
    if (view?.status === 'completed') {
      for (const index of view.files.keys()) yield batchOf({ type: 'file', file: fileOf(task, index, base) });
      return completed(task, view.files);
    }
  } catch {
    // For example, the database is not reachable. The task goes on nevertheless.
  }
  const text = `The video is still being made. POST ${base}/api/v1/video/retrieve with task_id ${id} gives it once it is finished.`;
  yield batchOf(textDelta(text));
  const result: ContentResult = { ...NO_TASK, finish: 'later', error: null, taskId: id };
  return { usage: null, outcome: 'pending', finishReason: 'queued', result };
}

const batchOf = (event: CallEvent): EventBatch => eventBatch([event])!;

const fileOf = (task: Task, index: number, base: string): FilePart => ({
  kind: 'file',
  mediaType: 'video/mp4',
  name: `${task.taskId}.mp4`,
  url: `${base}/api/v1/videos/${toVideoId(task)}/content?index=${index}`,
  bytes: null,
});

function completed(task: Task, files: readonly { readonly notes: string }[]): End {
  const ordered = notesOf(task);
  const billed = files.reduce((sum, { notes }) => sum + billedSeconds(ordered, notes).seconds, 0);
  return {
    usage: { second: BigInt(billed), call: BigInt(files.length) },
    outcome: 'complete',
    finishReason: 'completed',
    result: { ...NO_TASK, finish: 'stop', error: null },
  };
}

function failed(message: string, code: string): End {
  const errorCode: GatewayError['code'] = code === 'content_policy' ? 'content_policy' : 'provider_unavailable';
  const result: ContentResult = { ...NO_TASK, finish: 'failed', error: message, errorCode };
  return { usage: null, outcome: 'free', finishReason: code, result };
}
