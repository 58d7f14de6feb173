import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '#config';
import { MUST_BE, objectField, type Pipeline } from '#gateway';
import { requireAdmission } from '#auth';
import { MEDIA_ERROR } from '#pages';
import type { Blobs, Task, Tasks } from '#tasks';
import { mediaErrors } from '../../media-error.ts';
import { textField } from '../../request/image-fields.ts';
import type { Videos } from '../create-videos.ts';
import type { VideoView } from '../run/video-view.ts';
import { toVideoId, wantsSeveral } from '../video-task.ts';
import { addOpenaiRoutes } from './openai-routes.ts';
import { createSendFiles, type SendFiles } from './send-file-reply.ts';
import { type CallerOf, expired, idField } from './task-of-request.ts';
import { statusOrFile, statusSchema } from './video-schema.ts';

export interface TaskRoutesDeps {
  readonly pipeline: Pick<Pipeline, 'admitPoll'>;
  readonly videos: Videos;
  readonly tasks: Pick<Tasks, 'list' | 'costOf'>;
  readonly blobs: Pick<Blobs, 'read'>;
  /** The name of a task's provider; its id if the offer is gone. */
  readonly providerName: (task: Task) => string;
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
  const statusOf = (task: Task, view: VideoView) => viewStatus(task, view, deps.providerName(task));

  /** Answers with the task as it is now. */
  async function show(request: FastifyRequest, reply: FastifyReply, task: Task, send: SendFiles) {
    const view = await videos.view(task);
    if (view.status === 'completed' && !wantsJson(request))
      return send(request, reply, task, view.files, wantsSeveral(task));
    reply.header('x-task-status', view.status).header('x-generation-id', task.taskId);
    if (task.live) reply.header('retry-after', String(RETRY_S));
    return reply.send(statusOf(task, view));
  }

  function addOwnRoutes(app: FastifyInstance, callerOf: CallerOf, send: SendFiles) {
    const errors = mediaErrors(deps.onError, '/video');
    app.post<{ Body: TaskBody }>(
      '/video/retrieve',
      {
        ...errors,
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
        ...errors,
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
    const admissionOf = requireAdmission(app, deps.pipeline.admitPoll);
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

/** Aborts when the client leaves. */
function goneOf(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  return gone.signal;
}
