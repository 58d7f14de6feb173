import type { FastifyPluginAsync } from 'fastify';
import { GatewayError } from '#errors';
import { offersWithin } from '#accounts';
import { type Asker, createAskerOf } from '#auth';
import { createPageEntries, ListedPages, MUST_BE, type PageMembers, sendPage, tagPage, type TaggedPage } from '#http';
import { byService, type Catalog, type Offer } from '#catalog';
import { contextDeclared } from '#config';
import { isOfKind } from '#config/model-kinds';
import type { ChatDeps } from '../routes/chat-routes.ts';
import { chats } from '../model-kinds.ts';
import { LIST_VARIES_BY } from '../models/models-schema.ts';
import { parametersOf } from '../models/models-view.ts';
import { answerError, refusesAs } from '../translated/translated-route.ts';
import { ENTRY_CONFIG, GEMINI_PREFIX, modelParams, refuseMethod } from './address.ts';
import { GEMINI_ERROR, toGeminiError } from './errors.ts';
import { modelInAddress } from './request-form.ts';

export interface GeminiModelsDeps extends Pick<ChatDeps, 'onError' | 'pipeline'> {
  readonly catalog: Pick<Catalog, 'offers' | 'resolve' | 'version' | 'knows'>;
}

/** Google's API has 50 models on a page, and at most 1000. */
const PAGE_SIZE = 50;
const PAGE_SIZE_MAX = 1_000;

interface ModelPageQuery {
  readonly pageSize?: number;
  readonly pageToken?: string;
}

/** Whether a path is that of this list behind another base URL. */
const isListElsewhere = (path: string): boolean =>
  !path.startsWith('/api/v1beta/') && /\/v1(?:alpha|beta)\/models$/.test(path);

/** `GET /v1beta/models` and the entry of one model. Register them under `/api`. They need no credential. */
export function modelRoutes({ catalog, onError, pipeline }: GeminiModelsDeps): FastifyPluginAsync {
  const pages = new ListedPages(catalog.version);
  const askerOf = createAskerOf(pipeline.visitor);
  const wire = { toError: toGeminiError };
  const common = {
    errorHandler: answerError({ onError }, wire),
    config: { ...refusesAs(wire), refusesBelow: GEMINI_PREFIX },
  } as const;
  const described = { tags: ['Models'], security: [] };

  function pageAt({ pageSize = PAGE_SIZE, pageToken }: ModelPageQuery, { name, access }: Asker): Promise<TaggedPage> {
    const offset = offsetOf(pageToken);
    const make = () =>
      pageOf(byService(offersWithin(catalog, access).offers('model')).filter(isCallable), offset, pageSize);
    return access === null ? pages.page(`${offset} ${pageSize}`, name, make) : pages.once(name, make);
  }

  return async (app) => {
    app.get<{ Querystring: ModelPageQuery }>(
      `${GEMINI_PREFIX}/models`,
      {
        ...common,
        config: { ...common.config, clientsAppend: isListElsewhere },
        schema: {
          ...described,
          summary: 'List models in the Gemini API',
          operationId: 'listGeminiModels',
          description: 'Chat models and models of embeddings, in pages. No credential is needed.',
          querystring: pageSchema,
          response: { 200: listSchema, default: GEMINI_ERROR },
        },
      },
      async (request, reply) => {
        const asker = await askerOf(request);
        return sendPage(request, reply.header('vary', LIST_VARIES_BY), await pageAt(request.query, asker));
      },
    );
    app.get(
      `${GEMINI_PREFIX}/models/:model`,
      {
        ...common,
        config: { ...common.config, ...ENTRY_CONFIG },
        schema: {
          ...described,
          summary: 'Show a model in the Gemini API',
          operationId: 'getGeminiModel',
          description: 'Its entry in the list. No credential is needed.',
          params: modelParams,
          response: { 200: modelSchema, default: GEMINI_ERROR },
        },
      },
      (request, reply) => {
        const name = modelInAddress(request);
        refuseMethod(name, request.method);
        return sendPage(
          request,
          reply.header('vary', LIST_VARIES_BY),
          tagPage(entryOf(catalog.resolve(name, 'model').offers)),
        );
      },
    );
  };
}

function pageOf(models: readonly (readonly Offer[])[], offset: number, size: number): PageMembers {
  const end = offset + size;
  return {
    models: entriesOf(models.slice(offset, end)),
    ...(end < models.length ? { nextPageToken: String(end) } : {}),
  };
}

function offsetOf(token: string | undefined): number {
  if (token === undefined || token === '') return 0;
  if (/^[0-9]{1,7}$/.test(token)) return Number(token);
  throw new GatewayError('invalid_request', 'pageToken must be the nextPageToken of an earlier page', {
    param: 'pageToken',
  });
}

const isCallable = (offers: readonly Offer[]): boolean =>
  offers.some(({ model }) => model !== null && (chats(model) || isOfKind(model, 'embeddings')));

/** One model in the form of the Gemini API. `offers` is not empty. Limits that no provider declares are left out. */
function entryOf(offers: readonly Offer[]): object {
  const { service, displayName, description } = offers[0]!;
  const models = offers.flatMap(({ model }) => (model === null ? [] : [model]));
  const context = largest(models.map(contextDeclared));
  const output = largest(models.map(({ maxOutputTokens }) => maxOutputTokens));
  return {
    name: `models/${service}`,
    version: '1',
    displayName,
    ...(description ? { description } : {}),
    ...(context === null ? {} : { inputTokenLimit: context }),
    ...(output === null ? {} : { outputTokenLimit: output }),
    supportedGenerationMethods: [
      ...(models.some(chats) ? ['generateContent', 'streamGenerateContent', 'countTokens'] : []),
      ...(models.some((model) => isOfKind(model, 'embeddings')) ? ['embedContent', 'batchEmbedContents'] : []),
    ],
    ...(offers.some((offer) => parametersOf(offer).includes('reasoning')) ? { thinking: true } : {}),
  };
}

const entriesOf = createPageEntries(entryOf);

function largest(numbers: readonly (number | null)[]): number | null {
  const known = numbers.filter((number) => number !== null);
  return known.length === 0 ? null : Math.max(...known);
}

const pageSchema = {
  type: 'object',
  additionalProperties: true,
  properties: {
    pageSize: {
      type: 'integer',
      minimum: 1,
      maximum: PAGE_SIZE_MAX,
      description: `Models of a page. Default ${PAGE_SIZE}.`,
    },
    pageToken: {
      type: 'string',
      pattern: '^[0-9]{0,7}$',
      description: 'The `nextPageToken` of the page before.',
      [MUST_BE]: 'the nextPageToken of an earlier page',
    },
  },
} as const;

const modelSchema = {
  title: 'GeminiModel',
  type: 'object',
  required: ['name', 'displayName', 'supportedGenerationMethods'],
  additionalProperties: true,
  properties: {
    name: { type: 'string', description: '`models/` and the name of the model.' },
    version: { type: 'string' },
    displayName: { type: 'string' },
    description: { type: 'string' },
    inputTokenLimit: { type: 'integer', description: 'The largest context that a provider declares.' },
    outputTokenLimit: { type: 'integer', description: 'The most tokens of an answer that a provider declares.' },
    supportedGenerationMethods: { type: 'array', items: { type: 'string' } },
    thinking: { type: 'boolean', description: 'A provider takes settings for thinking.' },
  },
} as const;

const listSchema = {
  title: 'GeminiModels',
  type: 'object',
  required: ['models'],
  properties: {
    models: { type: 'array', items: modelSchema },
    nextPageToken: { type: 'string', description: 'For the next page; absent on the last one.' },
  },
} as const;
