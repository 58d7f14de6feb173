import type { FastifyRequest, FastifyInstance, FastifyPluginAsync, FastifyReply } from 'fastify';
import { GatewayError } from '#errors';
import { dialectOf, MUST_BE, objectField } from '#http';
import { MEDIA_ERROR } from '#http/error-schemas';
import type { Caller } from '#accounts';
import type { Pipeline } from '#call';
import type { Offer } from '#catalog';
import type { Config } from '#config';
import { requireAdmission } from '#auth';
import type { Blobs } from '#files';
import { type Task, type Tasks, ownerOf } from '#tasks';
import { mediaErrors } from '../../media-error.ts';
import { textField } from '../../request/image-fields.ts';
import type { Videos } from '../create-videos.ts';
import type { VideoView } from '../run/video-view.ts';
import { toVideoId, wantsSeveral, notesOf } from '../video-task.ts';
import { createSendFiles, type SendFiles } from './send-files.ts';
import {
  statusOrFile,
  statusSchema,
  openaiVideo,
  fileAnswer,
  openrouterVideoSchema,
  videoSchema,
} from './video-answers.ts';
import { addressOfVideo, openrouterVideo } from './openrouter-video.ts';

const idField = {
  type: 'string',
  minLength: 1,
  maxLength: 2048,
  description: 'The id of the task.',
  [MUST_BE]: 'the id from the answer of /video/queue',
};

type TaskCallerOf = (request: FastifyRequest) => Caller;

const expired = () => new GatewayError('expired', 'The files of this video are no longer stored');

export interface TaskRoutesDeps {
  readonly pipeline: Pick<Pipeline, 'admitPoll'>;
  readonly videos: Videos;
  readonly tasks: Pick<Tasks, 'list' | 'costOf'>;
  readonly blobs: Pick<Blobs, 'read'>;
  /** undefined if the offer does not exist any more: the id of its provider then stands for the name. */
  readonly offerOf: (id: string) => Offer | undefined;
  readonly config: Pick<Config, 'limits'>;
  readonly onError: (
    error: unknown,
    request: { readonly id: string; readonly method: string; readonly url: string },
  ) => void;
}

const RETRY_S = 2;
const taskBody = {
  title: 'VideoTask',
  type: 'object',
  required: ['task_id'],
  examples: [{ task_id: 'video_…', wait_for_final: true }],
  properties: {
    task_id: idField,
    wait_for_final: {
      type: ['boolean', 'null'],
      description: 'Waits for the end of the task, for about 30 seconds at most.',
      [MUST_BE]: 'true or false',
    },
    user: textField(1024, 'Your identifier of the end user.'),
    metadata: objectField('Key and value pairs. They are not kept.'),
  },
};

interface TaskBody {
  readonly task_id: string;
  readonly wait_for_final?: boolean | null;
}

/**
 * The routes for existing videos: `/video/retrieve` and `/video/cancel`, and the same in the shape of OpenAI's API:
 * `GET` and `DELETE /videos/{id}`, its content, and the list. Register it under `/api/v1`.
 */
export function taskRoutes(deps: TaskRoutesDeps): FastifyPluginAsync {
  const { videos } = deps;
  const statusOf = (task: Task, view: VideoView) =>
    viewStatus(task, view, deps.offerOf(task.offerId)?.provider.name ?? task.provider);

  async function show(request: FastifyRequest, reply: FastifyReply, task: Task, send: SendFiles) {
    const view = await videos.view(task);
    if (view.status === 'completed' && !wantsJson(request))
      return send(request, reply, task, view.files, wantsSeveral(task));
    reply.header('x-task-status', view.status).header('x-generation-id', task.taskId);
    if (task.live) reply.header('retry-after', String(RETRY_S));
    return reply.send(statusOf(task, view));
  }

  function addOwnRoutes(app: FastifyInstance, callerOf: TaskCallerOf, send: SendFiles) {
    const { config, ...errors } = mediaErrors(deps.onError, '/video');
    const ofCalls = { ...errors, config: { ...config, ofCalls: true as const } };
    app.post<{ Body: TaskBody }>(
      '/video/retrieve',
      {
        ...ofCalls,
        schema: {
          tags: ['Videos'],
          summary: 'Ask for a video',
          operationId: 'retrieveVideo',
          description:
            'Shows the state of a task as JSON. When the task is finished, the answer is the file: an MP4, or a ZIP archive of several. `Range` is supported. With `Accept: application/json` the answer is always JSON, with the addresses of the files. The status is 404 for a task of another account, and for a task whose files are no longer stored (`expired`).',
          body: taskBody,
          response: { 200: statusOrFile, default: MEDIA_ERROR },
        },
        serializerCompiler: () => (data) => JSON.stringify(data),
      },
      async (request, reply) => {
        const { task_id: id, wait_for_final: waits } = request.body;
        const task = await videos.find(id, callerOf(request));
        const seen = waits ? await videos.wait(task, goneOf(reply)) : await videos.refresh(task);
        return show(request, reply, seen, send);
      },
    );
    app.post<{ Body: TaskBody }>(
      '/video/cancel',
      {
        ...ofCalls,
        schema: {
          tags: ['Videos'],
          summary: 'Cancel a video',
          operationId: 'cancelVideo',
          description:
            'Ends a running task. Nothing is charged for it. The status is 422 if its provider cannot cancel it, or if one of its files is finished. For a task that has ended, the answer shows the task.',
          body: taskBody,
          response: { 200: statusSchema, default: MEDIA_ERROR },
        },
        serializerCompiler: () => (data) => JSON.stringify(data),
      },
      async (request, reply) => {
        const task = await videos.cancel(await videos.find(request.body.task_id, callerOf(request)));
        return reply.send(statusOf(task, await videos.view(task)));
      },
    );
  }

  return async (app) => {
    const admissionOf = requireAdmission(app, deps.pipeline.admitPoll, false, true, true);
    const callerOf = (request: FastifyRequest) => admissionOf(request).caller;
    const send = createSendFiles(deps, admissionOf);
    addOwnRoutes(app, callerOf, send);
    addOpenaiRoutes(app, deps, send, callerOf);
  };
}

/** A task as `/video/retrieve` shows it. Throws GatewayError `expired`. */
function viewStatus(task: Task, view: VideoView, provider: string): object {
  if (view.status === 'expired') throw expired();
  const id = toVideoId(task);
  const metadata = (raw: object) => ({ provider_metadata: { provider, raw } });
  if (view.status === 'failed')
    return { id, status: 'failed', progress: 0, estimated_seconds: 0, error: view.error, ...metadata(view.raw) };
  if (view.status !== 'completed') {
    const { percent, secondsLeft, raw } = view.progress;
    return { id, status: view.status, progress: percent, estimated_seconds: secondsLeft, ...metadata(raw) };
  }
  const files = view.files.map(({ bytes, sha256, type }, index) => ({
    index,
    url: `/api/v1/videos/${id}/content?index=${index}`,
    bytes,
    sha256,
    type,
  }));
  return { id, status: 'completed', progress: 100, estimated_seconds: 0, files, ...metadata({}) };
}

/** Whether a client takes only JSON. Such a client gets no file. */
function wantsJson({ headers: { accept = '' } }: FastifyRequest): boolean {
  return accept.includes('application/json') && !/\*\/\*|video\/|zip/.test(accept);
}

function goneOf(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  return gone.signal;
}

const PAGE = 20;
const PAGE_MAX = 100;
const PAGE_NAMES = { after: 'after', next: 'last_id' } as const;
const orderField = {
  type: 'string',
  enum: ['desc'],
  description: 'Only `desc` is supported: the most recently changed come first.',
  [MUST_BE]: 'desc: the most recently changed videos come first',
};
const deletedSchema = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    object: { type: 'string', enum: ['video.deleted'] },
    deleted: { type: 'boolean' },
  },
};
const onlyId = { type: 'object', required: ['id'], properties: { id: idField } };

const described = (summary: string, operationId: string, description: string) => ({
  tags: ['Videos'],
  summary,
  operationId,
  description,
});

function addOpenaiRoutes(
  app: FastifyInstance,
  { videos, tasks }: Pick<TaskRoutesDeps, 'videos' | 'tasks'>,
  send: SendFiles,
  callerOf: TaskCallerOf,
): void {
  addList(app, { videos, tasks }, callerOf);
  app.get<{ Params: { id: string } }>(
    '/videos/:id',
    {
      schema: {
        ...described(
          'Show a video',
          'showVideo',
          'Shows the state of a video, in the shape of OpenAI’s API. One that was asked for in the shape of OpenRouter’s API is shown in that shape, but not below `/v1`.',
        ),
        params: onlyId,
        response: { 200: { description: 'The video.', anyOf: [videoSchema, openrouterVideoSchema] } },
      },
      serializerCompiler: () => (data) => JSON.stringify(data),
    },
    async (request) => {
      const task = await videos.refresh(await videos.find(request.params.id, callerOf(request), 'id'));
      const view = await videos.view(task);
      if (notesOf(task).openrouter !== true || dialectOf(request) === 'openai') return openaiVideo(task, view);
      const cost = view.status === 'completed' ? await tasks.costOf(task, () => task.taskId) : null;
      const charged = cost === null ? null : cost.calls.reduce((sum, call) => sum + call.charged, 0n);
      return openrouterVideo(task, view, addressOfVideo(request, toVideoId(task)), charged);
    },
  );
  app.get<{ Params: { id: string }; Querystring: { index?: number } }>(
    '/videos/:id/content',
    {
      schema: {
        ...described(
          'Fetch a video',
          'fetchVideo',
          'The file of a finished video. `index` selects one of several variants; without it the answer is a ZIP archive of all. `Range` is supported.',
        ),
        params: onlyId,
        querystring: {
          type: 'object',
          additionalProperties: true,
          properties: {
            index: { type: 'integer', minimum: 0, maximum: 99, description: 'The index of the variant.' },
            variant: { type: 'string', enum: ['video'], description: 'Only `video` is supported.' },
          },
        },
        response: { 200: fileAnswer },
      },
    },
    async (request, reply) => {
      const task = await videos.refresh(await videos.find(request.params.id, callerOf(request), 'id'));
      const view = await videos.view(task);
      const { index } = request.query;
      if (view.status === 'expired') throw expired();
      const files = view.status === 'completed' ? view.files : [];
      const chosen = index === undefined ? files : files.slice(index, index + 1);
      if (chosen.length > 0) return send(request, reply, task, chosen, index === undefined && wantsSeveral(task));
      throw new GatewayError('not_found', `There is no such file: the video is ${view.status}`, { param: 'id' });
    },
  );
  app.delete<{ Params: { id: string } }>(
    '/videos/:id',
    {
      config: { ofCalls: true },
      schema: {
        ...described(
          'Delete a video',
          'deleteVideo',
          'Deletes a video and its files. One that is still being made is cancelled, free of charge. What was charged stays charged, and `/generation` still shows it.',
        ),
        params: onlyId,
        response: { 200: deletedSchema },
      },
    },
    async (request) => {
      const task = await videos.find(request.params.id, callerOf(request), 'id');
      const over = await videos.cancel(task);
      await videos.remove(over);
      return { id: toVideoId(over), object: 'video.deleted', deleted: true };
    },
  );
}

function addList(
  app: FastifyInstance,
  { videos, tasks }: Pick<TaskRoutesDeps, 'videos' | 'tasks'>,
  callerOf: TaskCallerOf,
): void {
  app.get<{ Querystring: { after?: string; limit?: number } }>(
    '/videos',
    {
      schema: {
        ...described('List videos', 'listOwnVideos', 'The videos of the account, the most recently changed first.'),
        querystring: {
          type: 'object',
          additionalProperties: true,
          properties: {
            after: { type: 'string', maxLength: 2048, description: '`last_id` of the page before.' },
            limit: { type: 'integer', minimum: 1, maximum: PAGE_MAX, default: PAGE, description: 'Of one page.' },
            order: orderField,
          },
        },
        response: {
          200: {
            type: 'object',
            properties: {
              object: { type: 'string', enum: ['list'] },
              data: { type: 'array', items: videoSchema },
              first_id: { type: ['string', 'null'], description: 'The id of the first video of the page.' },
              has_more: { type: 'boolean' },
              last_id: {
                type: ['string', 'null'],
                description: 'Value of `after` for the next page; null on the last page.',
              },
            },
          },
        },
      },
      serializerCompiler: () => (data) => JSON.stringify(data),
    },
    async (request) => {
      const { after = null, limit = PAGE } = request.query;
      const query = { primitive: 'video', service: null, after, limit, pageNames: PAGE_NAMES } as const;
      const caller = callerOf(request);
      const page = await tasks.list(ownerOf(caller), query);
      const access = caller.key?.access;
      const visible = access ? page.tasks.filter(({ service }) => access.allows('video', service, null)) : page.tasks;
      const data = await Promise.all(visible.map(async (task) => openaiVideo(task, await videos.view(task))));
      return {
        object: 'list',
        data,
        first_id: visible[0] ? toVideoId(visible[0]) : null,
        has_more: page.next !== null,
        last_id: page.next,
      };
    },
  );
}
