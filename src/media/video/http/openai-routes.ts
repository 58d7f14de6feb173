import type { FastifyInstance } from 'fastify';
import { dialectOf, GatewayError } from '#wire';
import { MUST_BE } from '#gateway';
import { ownerOf } from '#tasks';
import { notesOf, toVideoId, wantsSeveral } from '../video-task.ts';
import { openaiVideo } from './openai-video.ts';
import { addressOfVideo, openrouterVideo } from './openrouter-video.ts';
import type { SendFiles } from './send-file-reply.ts';
import { type CallerOf, expired, idField } from './task-of-request.ts';
import type { TaskRoutesDeps } from './task-routes.ts';
import { fileAnswer, openrouterVideoSchema, videoSchema } from './video-schema.ts';

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

/** Adds the routes for existing videos, in the shape of OpenAI's API. */
export function addOpenaiRoutes(
  app: FastifyInstance,
  { videos, tasks }: Pick<TaskRoutesDeps, 'videos' | 'tasks'>,
  send: SendFiles,
  callerOf: CallerOf,
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
      const task = await videos.refresh(await videos.find(request.params.id, callerOf(request)));
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
          properties: {
            index: { type: 'integer', minimum: 0, maximum: 99, description: 'The index of the variant.' },
            variant: { type: 'string', enum: ['video'], description: 'Only `video` is supported.' },
          },
        },
        response: { 200: fileAnswer },
      },
    },
    async (request, reply) => {
      const task = await videos.refresh(await videos.find(request.params.id, callerOf(request)));
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
      const task = await videos.find(request.params.id, callerOf(request));
      const over = await videos.cancel(task);
      await videos.remove(over);
      return { id: toVideoId(over), object: 'video.deleted', deleted: true };
    },
  );
}

function addList(
  app: FastifyInstance,
  { videos, tasks }: Pick<TaskRoutesDeps, 'videos' | 'tasks'>,
  callerOf: CallerOf,
): void {
  app.get<{ Querystring: { after?: string; limit?: number } }>(
    '/videos',
    {
      schema: {
        ...described('List videos', 'listOwnVideos', 'The videos of the account, the most recently changed first.'),
        querystring: {
          type: 'object',
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
      const allowed = caller.key?.allowedServices ?? null;
      const shown = page.tasks.filter(({ service }) => allowed === null || allowed.includes(service));
      const data = await Promise.all(shown.map(async (task) => openaiVideo(task, await videos.view(task))));
      return {
        object: 'list',
        data,
        first_id: shown[0] ? toVideoId(shown[0]) : null,
        has_more: page.next !== null,
        last_id: page.next,
      };
    },
  );
}
