import type { JsonObject } from '#wire';
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { GatewayError } from '#errors';
import { authorise, type Pipeline } from '#call';
import { type Caller, needsCredential } from '#accounts';
import type { MoreMemory } from '#http';
import { requireAdmission } from '#auth';
import type { KeptResponse, KeptResponses } from '#kept-responses';
import { ownerOf } from '#tasks';
import { answerError, EVENT_SCHEMA, refusesAs } from '../translated/translated-route.ts';
import type { ChatDeps } from '../routes/chat-routes.ts';
import { toResponseError } from './errors.ts';
import { responseAnswerSchema } from './schema.ts';
import type { Background } from './background/background.ts';
import { createSendStream, type SendStreamDeps } from './background/follow-stream.ts';
import type { Conversations } from './kept/conversations.ts';
import { cannotCancel, noResponse } from './kept/errors.ts';
import { callIdOf, isResponseId } from './kept/kept-ids.ts';

interface KeptDeps extends Omit<SendStreamDeps, 'background'> {
  readonly pipeline: Pick<Pipeline, 'admitPoll'>;
  /** null if the gateway keeps no responses. */
  readonly keptResponses: KeptResponses | null;
  readonly background: Background | null;
  readonly conversations: Pick<Conversations, 'inputOf' | 'show'>;
  readonly onError: ChatDeps['onError'];
}

interface OfResponse {
  Params: { response_id: string };
}

const PAGE = 20;
const PAGE_MAX = 100;
const params = {
  type: 'object',
  required: ['response_id'],
  properties: {
    response_id: { type: 'string', minLength: 1, maxLength: 512, description: 'Id of a response that is kept.' },
  },
};

const described = (summary: string, operationId: string, description: string) => ({
  tags: ['Chat'],
  summary,
  operationId,
  description,
  params,
});

export function keptRoutes(deps: KeptDeps): FastifyPluginAsync {
  const { keptResponses, background } = deps;
  const sendStream = background && createSendStream({ ...deps, background });
  const wire = { toError: toResponseError };

  async function find(id: string, caller: Caller): Promise<KeptResponse> {
    if (caller.anonymous) throw needsCredential();
    const keptResponse =
      keptResponses !== null && isResponseId(id) ? await keptResponses.find(id, ownerOf(caller)) : null;
    if (keptResponse === null) throw noResponse(id);
    // Kept responses are shown without a call, so the authorisation of calls does not cover them.
    authorise(caller, null, keptResponse.service);
    return keptResponse;
  }

  async function show(keptResponse: KeptResponse, request: FastifyRequest, reply: FastifyReply): Promise<JsonObject> {
    const response = await counted(request, (memory) => deps.conversations.show(keptResponse, memory));
    if (response === null) throw noResponse(keptResponse.id);
    void reply.header('x-generation-id', callIdOf(keptResponse.id));
    return response;
  }

  return async (app) => {
    // Agents continue and ask for what they began with their run tokens.
    const admissionOf = requireAdmission(app, deps.pipeline.admitPoll, true);
    const callerOf = (request: FastifyRequest) => admissionOf(request).caller;
    const common = {
      errorHandler: answerError(deps, wire),
      config: refusesAs(wire),
      serializerCompiler: () => (data: unknown) => JSON.stringify(data),
    };
    app.get<OfResponse & { Querystring: StreamQuery }>(
      '/responses/:response_id',
      {
        ...common,
        schema: {
          ...described(
            'Show a response',
            'showResponse',
            'A response that is kept, also while it is made in the background. With `stream`, the events of one that was created with `background` and `stream`, as they come. The header `x-generation-id` has the id of its call.',
          ),
          querystring: streamSchema,
          response: { 200: SHOWN },
        },
      },
      async (request, reply) => {
        const keptResponse = await find(request.params.response_id, callerOf(request));
        const { stream, starting_after: after } = request.query;
        if (stream === true)
          return sendStream!(keptResponse, after, { request, reply, admission: admissionOf(request) });
        if (after !== undefined) throw afterWithoutStream();
        await background!.endIfLost(keptResponse);
        return show(keptResponse, request, reply);
      },
    );
    app.post<OfResponse>(
      '/responses/:response_id/cancel',
      {
        ...common,
        schema: {
          ...described(
            'Cancel a response',
            'cancelResponse',
            'Ends a response that is made in the background, and shows what came until then. It is charged like a call whose client leaves: `usage` has the cost when the call is settled, which GET shows. A response that is cancelled already is shown again.',
          ),
          response: { 200: responseAnswerSchema },
        },
      },
      async (request, reply) => {
        const keptResponse = await find(request.params.response_id, callerOf(request));
        const isUnderWay = await background!.cancel(keptResponse);
        const response = await show(keptResponse, request, reply);
        if (!isUnderWay && response['status'] !== 'cancelled') throw cannotCancel(response);
        return response;
      },
    );
    app.delete<OfResponse>(
      '/responses/:response_id',
      {
        ...common,
        schema: {
          ...described(
            'Delete a response',
            'deleteResponse',
            'Deletes a response that is kept. Conversations that continue it can then no longer be continued. A response that is made in the background is cancelled first.',
          ),
          response: { 200: deletedSchema },
        },
      },
      async (request) => {
        const keptResponse = await find(request.params.response_id, callerOf(request));
        await keptResponses!.delete(keptResponse);
        background!.deleted(keptResponse.id);
        return { id: keptResponse.id, object: 'response', deleted: true };
      },
    );
    app.get<OfResponse & { Querystring: ItemPageQuery }>(
      '/responses/:response_id/input_items',
      {
        ...common,
        schema: {
          ...described(
            'List the input of a response',
            'listResponseInput',
            'The items that the model got with the request of a kept response, with those of the conversation that it continued.',
          ),
          querystring: pageSchema,
          response: { 200: listSchema },
        },
      },
      async (request) => {
        const caller = callerOf(request);
        const keptResponse = await find(request.params.response_id, caller);
        const items = await counted(request, (memory) => deps.conversations.inputOf(keptResponse, caller, memory));
        return pageOf(items, request.query);
      },
    );
  };
}

/** Runs `read` with counted memory, which is free again at its end. */
async function counted<T>(request: FastifyRequest, read: (memory: MoreMemory) => Promise<T>): Promise<T> {
  const memory = request.server.requestBodies.beside(request);
  try {
    return await read(memory);
  } finally {
    memory.release();
  }
}

interface ItemPageQuery {
  readonly after?: string;
  readonly limit?: number;
  readonly order?: 'asc' | 'desc';
}

const pageSchema = {
  type: 'object',
  additionalProperties: true,
  properties: {
    after: { type: 'string', maxLength: 512, description: 'The `last_id` of the page before.' },
    limit: { type: 'integer', minimum: 1, maximum: PAGE_MAX, default: PAGE, description: 'Items on one page.' },
    order: { type: 'string', enum: ['asc', 'desc'], default: 'desc', description: '`desc`: the last item first.' },
  },
};
const listSchema = {
  type: 'object',
  properties: {
    object: { type: 'string', const: 'list' },
    data: { type: 'array', items: { type: 'object', additionalProperties: true } },
    first_id: { type: ['string', 'null'], description: 'Id of the first item of the page; null without one.' },
    last_id: { type: ['string', 'null'], description: 'Value of `after` for the next page; null without an item.' },
    has_more: { type: 'boolean' },
  },
};
const SHOWN = {
  description: 'The response; with `stream`, its events.',
  content: {
    'application/json': { schema: responseAnswerSchema },
    'text/event-stream': { schema: EVENT_SCHEMA },
  },
};

interface StreamQuery {
  readonly stream?: boolean;
  readonly starting_after?: number;
}

const streamSchema = {
  type: 'object',
  additionalProperties: true,
  properties: {
    stream: { type: 'boolean', description: 'Answer with the events. Default false.' },
    starting_after: {
      type: 'integer',
      minimum: 0,
      description: 'With `stream`: the `sequence_number` after which the events begin. Default: all events.',
    },
  },
};
const afterWithoutStream = () =>
  new GatewayError('invalid_request', 'starting_after needs stream=true: without it the whole response is shown', {
    param: 'starting_after',
  });
const deletedSchema = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    object: { type: 'string', const: 'response' },
    deleted: { type: 'boolean' },
  },
};

function pageOf(items: readonly JsonObject[], { after, limit = PAGE, order = 'desc' }: ItemPageQuery): object {
  const ordered = order === 'desc' ? items.toReversed() : items;
  const before = after === undefined ? -1 : ordered.findIndex(({ id }) => id === after);
  if (after !== undefined && before === -1)
    throw new GatewayError('invalid_request', 'after must be the id of an item of this list', { param: 'after' });
  const data = ordered.slice(before + 1, before + 1 + limit);
  return {
    object: 'list',
    data,
    first_id: data[0]?.['id'] ?? null,
    last_id: data.at(-1)?.['id'] ?? null,
    has_more: before + 1 + limit < ordered.length,
  };
}
