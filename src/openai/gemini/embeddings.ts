import { hash } from 'node:crypto';
import type { FastifyPluginAsync } from 'fastify';
import { DOCUMENTED, MUST_BE, PARSED_JSON } from '#http';
import { GatewayError } from '#errors';
import { formatUsd, type Settlement, toUsdNumber } from '#billing/amounts';
import {
  addPaidRoute,
  bodyFrom,
  openCall,
  type PaidRoute,
  type Payer,
  payerOf,
  routingFields,
  type StartedProviderCall,
  takeBytes,
} from '#call';
import { OWN_TURN_BYTES, type JsonObject } from '#wire';
import { readElsewhere } from '#wire/replies';
import { embeddingsIn } from './embeddings-worker.ts';
import { NO_PAYMENTS } from '#payments';
import { requireAdmission } from '#auth';
import { type ChatDeps, paidRouteDeps } from '../routes/chat-routes.ts';
import type { EmbeddingsBody } from '../embeddings/embeddings-schema.ts';
import { embeddingsToCall } from '../embeddings/embeddings-to-call.ts';
import type { EmbeddingsResult } from '../embeddings/embeddings-reader.ts';
import { writeAnswer } from '../passing/write-answer.ts';
import { invalid } from '../translated/chat-turns.ts';
import { answerError, createReadBody, errorsOf, refusesAs } from '../translated/translated-route.ts';
import { configOf, modelParams, pathOf } from './address.ts';
import { GEMINI_ERROR, toGeminiError } from './errors.ts';
import { type Content, NOT_HERE } from './schema.ts';
import { modelInAddress, placedBody } from './request-form.ts';

/** A request for the embedding of one content. */
interface EmbedContentRequest {
  readonly model?: string | null;
  readonly content: Content;
  readonly outputDimensionality?: number | null;
  readonly [field: string]: unknown;
}

interface EmbedRequest extends Payer {
  readonly body: EmbeddingsBody;
  readonly dropped: readonly string[];
}

type EmbedMethod = 'embedContent' | 'batchEmbedContents';
type StartedEmbeddings = StartedProviderCall<EmbeddingsResult | null, Uint8Array>;

const wire = { toError: toGeminiError, errorSchema: GEMINI_ERROR };

export function embedRoutes(deps: ChatDeps): FastifyPluginAsync {
  return async (app) => {
    takeBytes(app, deps.config.limits.chatBodyBytesMax, PARSED_JSON);
    const admissionOf = requireAdmission(app, deps.pipeline.admit, true);
    for (const method of ['embedContent', 'batchEmbedContents'] as const)
      addPaidRoute(app, paidRouteDeps(deps, admissionOf), embedRoute(deps, method));
  };
}

function embedRoute(deps: ChatDeps, method: EmbedMethod): PaidRoute<EmbedRequest, StartedEmbeddings> {
  const { pipeline, payments = NO_PAYMENTS, config, onError } = deps;
  const { limits, upstream, billing } = config;
  const isBatch = method === 'batchEmbedContents';
  const schema = isBatch ? batchSchema : requestSchema;
  const readBody = createReadBody<JsonObject & { readonly model: string }>(limits, schema);
  const path = pathOf(method);
  return {
    path,
    options: {
      schema: {
        ...DESCRIBED[method],
        tags: ['Chat'],
        consumes: ['application/json'],
        params: modelParams,
        body: schema,
        response: { 200: isBatch ? batchAnswerSchema : answerSchema, ...errorsOf(wire) },
      },
      errorHandler: answerError({ onError }, wire),
      config: { ...refusesAs(wire), ...configOf(method) },
    },
    headers: ({ id }) => ({ 'request-id': id }),
    async decode(request, admitted) {
      const { headers } = request;
      const bytes = bodyFrom(request);
      const model = modelInAddress(request);
      const requestBody = await readBody(bytes, headers, (parsed) => placedBody(parsed, model, null));
      const bodyHash = () => hash('sha256', `${path} ${model} ${hash('sha256', bytes)}`);
      const payer = await payerOf(payments, headers, admitted, bodyHash);
      return { ...toEmbeddings(requestBody, isBatch), ...payer };
    },
    answer({ body, dropped, caller, payment }, { request, client, onError: failed }) {
      const { request: call, dropped: droppedBelow } = embeddingsToCall(body, {
        caller,
        payment,
        requestId: request.id,
        headers: request.headers,
        replyBytesMax: upstream.replyBytesMax,
        receipts: billing.receipts,
        lost: dropped,
      });
      const lost = () => [...dropped, ...droppedBelow()];
      return {
        noun: 'Embeddings',
        model: body.model,
        open: (callId, gone) => openCall(pipeline, call, callId, gone),
        write: (startedCall, sink) =>
          writeAnswer(startedCall, sink, {
            dropped: lost,
            onError: failed,
            noun: 'Embeddings',
            client,
            toHttp: (error) => toGeminiError(error, request),
            pieces: async (result, settlement) => [
              await answerOf(result, settlement, { isBatch, account: caller.account }),
            ],
          }),
      };
    },
  };
}

/** Fields of the gateway, which mean the same at `/embeddings`. */
const COPIED: readonly string[] = ['provider', 'session_id', 'max_cost'];
const READ: ReadonlySet<string> = new Set([
  ...COPIED,
  'model',
  'stream',
  'content',
  'requests',
  'outputDimensionality',
]);

/** Turns a checked request into one of `/embeddings`. Throws GatewayError `invalid_request`. */
function toEmbeddings(
  requestBody: JsonObject & { readonly model: string },
  isBatch: boolean,
): { readonly body: EmbeddingsBody; readonly dropped: readonly string[] } {
  const requests = isBatch
    ? (requestBody['requests'] as readonly EmbedContentRequest[])
    : [requestBody as unknown as EmbedContentRequest];
  const { model } = requestBody;
  const lengths = new Set(requests.map(({ outputDimensionality: length }) => length ?? null));
  if (lengths.size > 1) throw invalid('requests', 'requests with one outputDimensionality for all');
  const [dimensions] = lengths;
  const input = requests.map(({ content, model: modelName }, index) => {
    const at = isBatch ? `requests[${index}]` : '';
    if (isBatch && (modelName ?? null) !== null && modelName !== model && modelName !== `models/${model}`)
      throw invalid(`${at}.model`, 'absent, or the model that the address names');
    return textOf(content, isBatch ? `${at}.content` : 'content');
  });
  const names = [requestBody, ...(isBatch ? requests : [])].flatMap((one) =>
    Object.keys(one).filter((name) => !READ.has(name) && (one[name] ?? null) !== null),
  );
  const fields = COPIED.flatMap((name) =>
    (requestBody[name] ?? null) === null ? [] : [[name, requestBody[name]] as const],
  );
  return {
    body: {
      ...Object.fromEntries(fields),
      model,
      input,
      encoding_format: 'float',
      ...(dimensions === null ? {} : { dimensions }),
    },
    dropped: [...new Set(names)],
  };
}

function textOf({ parts }: Content, at: string): string {
  const texts = (parts ?? []).map((part, index) => {
    if (typeof part['text'] === 'string') return part['text'];
    throw new GatewayError('unprocessable', `${at}.parts[${index}] must be text: models here embed texts only`, {
      param: `${at}.parts[${index}]`,
    });
  });
  const text = texts.join('\n');
  if (text === '') throw invalid(at, 'an object with parts, such as {"parts": [{"text": "…"}]}');
  return text;
}

async function answerOf(
  result: EmbeddingsResult,
  settlement: Settlement,
  { isBatch, account }: { readonly isBatch: boolean; readonly account: string },
): Promise<Uint8Array> {
  const { bytes } = result;
  const embeddings = bytes.length <= OWN_TURN_BYTES ? embeddingsIn(bytes) : await embeddingsElsewhere(bytes, account);
  const embeddingsText = isBatch ? `"embeddings":[${embeddings.join(',')}]` : `"embedding":${embeddings[0]}`;
  return Buffer.from(`{${embeddingsText},"usageMetadata":${JSON.stringify(usageOf(result, settlement))}}`);
}

const WORKER = new URL('./embeddings-worker.ts', import.meta.url);

function embeddingsElsewhere(bytes: Buffer, account: string): Promise<readonly string[]> {
  const { buffer } = Uint8Array.from(bytes);
  return readElsewhere(account, WORKER, buffer, [buffer]) as Promise<readonly string[]>;
}

function usageOf({ usage }: EmbeddingsResult, { charged, fee }: Settlement): object {
  return {
    promptTokenCount: usage['prompt_tokens'],
    totalTokenCount: usage['total_tokens'],
    cost: toUsdNumber(charged),
    cost_details: { charged_usd: formatUsd(charged), fee_usd: formatUsd(fee) },
  };
}

const DESCRIBED = {
  embedContent: {
    summary: 'Embed a text in the Gemini API',
    operationId: 'embedContent',
    description: 'The embedding of a text by a model of `/embeddings`, priced in the same way.',
  },
  batchEmbedContents: {
    summary: 'Embed texts in the Gemini API',
    operationId: 'batchEmbedContents',
    description: 'Embeddings of several texts by a model of `/embeddings`, in one call, priced in the same way.',
  },
} as const;

/** As in Google's API. So the answer is small enough to be written in one go. */
const REQUESTS_MAX = 100;

const { provider, session_id: session, max_cost: maxCost } = routingFields;

const textContent = {
  title: 'GeminiEmbeddedContent',
  type: 'object',
  required: ['parts'],
  additionalProperties: true,
  properties: {
    parts: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        additionalProperties: true,
        properties: { text: { type: 'string', [MUST_BE]: 'a string' } },
        [MUST_BE]: 'an object such as {"text": "…"}',
        [DOCUMENTED]: { required: ['text'], allOf: [{ properties: { text: { minLength: 1 } } }] },
      },
      description: 'Texts, which are embedded as one.',
      [MUST_BE]: 'an array of parts such as {"text": "…"}',
    },
  },
  [MUST_BE]: 'an object such as {"parts": [{"text": "…"}]}',
} as const;

const askedFields = {
  model: {
    type: ['string', 'null'],
    description: 'If it is given, that of the address.',
    [MUST_BE]: 'a string',
    [DOCUMENTED]: NOT_HERE,
  },
  content: textContent,
  outputDimensionality: {
    type: ['integer', 'null'],
    minimum: 1,
    maximum: 1_000_000,
    description: 'Length of the embedding, for models that support several lengths.',
    [MUST_BE]: 'an integer from 1 to 1000000',
  },
  taskType: { type: ['string', 'null'], description: 'No provider gets it.', [MUST_BE]: 'a string' },
  title: { type: ['string', 'null'], description: 'No provider gets it.', [MUST_BE]: 'a string' },
} as const;

const requestSchema = {
  title: 'GeminiEmbedRequest',
  type: 'object',
  required: ['content'],
  additionalProperties: true,
  [MUST_BE]: 'a JSON object',
  examples: [{ content: { parts: [{ text: 'What is a tollgate?' }] } }],
  properties: { ...askedFields, provider, session_id: session, max_cost: maxCost },
} as const;

const batchSchema = {
  title: 'GeminiEmbedBatch',
  type: 'object',
  required: ['requests'],
  additionalProperties: true,
  [MUST_BE]: 'a JSON object',
  examples: [{ requests: [{ content: { parts: [{ text: 'What is a tollgate?' }] } }] }],
  properties: {
    model: askedFields.model,
    requests: {
      type: 'array',
      minItems: 1,
      maxItems: REQUESTS_MAX,
      items: {
        title: 'GeminiEmbedItem',
        type: 'object',
        required: ['content'],
        additionalProperties: true,
        properties: askedFields,
        [MUST_BE]: 'an object with content',
      },
      [MUST_BE]: `an array of 1 to ${REQUESTS_MAX} requests`,
    },
    provider,
    session_id: session,
    max_cost: maxCost,
  },
} as const;

const embedding = {
  type: 'object',
  required: ['values'],
  properties: { values: { type: 'array', items: { type: 'number' } } },
} as const;

const usageMetadata = {
  title: 'GeminiEmbeddingUsage',
  type: 'object',
  additionalProperties: true,
  properties: {
    promptTokenCount: { type: 'integer', description: 'Tokens.' },
    cost: { type: 'number', description: 'USD charged.' },
  },
} as const;

const answerSchema = {
  title: 'GeminiEmbedding',
  type: 'object',
  required: ['embedding'],
  properties: { embedding, usageMetadata },
} as const;

const batchAnswerSchema = {
  title: 'GeminiEmbeddings',
  type: 'object',
  required: ['embeddings'],
  properties: { embeddings: { type: 'array', items: embedding }, usageMetadata },
} as const;
