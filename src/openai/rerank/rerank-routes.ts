import type { FastifyPluginAsync } from 'fastify';
import type { GatewayError } from '#errors';
import { toHttpError } from '#http';
import { COHERE_ERROR } from '#http/error-schemas';
import type { ChatDeps } from '../routes/chat-routes.ts';
import { type AnsweredCall, type PassedWire, passedRoutes } from '../passing/passed-route.ts';
import type { ChatWire } from '../translated/chat-wire.ts';
import { costMembers } from '../passing/write-answer.ts';
import type { RerankResult } from './rerank-reader.ts';
import {
  checkDocuments,
  rerankAnswerSchema,
  type RerankBody,
  type RerankDocument,
  rerankSchema,
} from './rerank-schema.ts';
import { rerankToCall } from './rerank-to-call.ts';

const wire = (returnsDocuments: boolean): PassedWire<RerankBody, RerankResult> => ({
  kind: 'rerank',
  described: {
    operationId: 'rerank',
    description:
      'A model whose output is `rerank` scores each document. The answer is read by clients of Cohere’s, Jina’s and OpenRouter’s APIs. ' +
      'The price is per search unit (a query with up to 100 documents), per token, or both. Fields that are not listed here go to providers that list them.',
  },
  noun: 'Scores',
  schema: rerankSchema,
  parameters: ['top_n', 'max_tokens_per_doc', 'return_documents'],
  answerSchema: rerankAnswerSchema,
  addresses: ['image', 'image_url', 'url'],
  check: checkDocuments,
  toCall: rerankToCall,
  answer: (result, call, body) => [Buffer.from(JSON.stringify(answerOf(result, call, body, returnsDocuments)))],
});

export const RERANK_WIRE = wire(true);

/** The same with the defaults and the errors of version 2 of Cohere's API. Register it under `/api/v2`. */
export const cohereRerankRoutes = (deps: ChatDeps): FastifyPluginAsync =>
  passedRoutes(deps, wire(false), { name: 'V2', errorSchema: COHERE_ERROR, toError: toCohereError });

/** An error in the form of Cohere's API, whose clients read `message` at the top. A 402 also has the payment terms. */
function toCohereError(error: GatewayError, { id }: { readonly id: string }): ReturnType<ChatWire<never>['toError']> {
  const { status, headers, body } = toHttpError(error);
  const {
    error: { message },
    ...terms
  } = body;
  return { status, headers, body: { id, message, ...terms } };
}

/** The answer in the shapes of all three APIs. */
function answerOf(
  { results, searchUnits, tokens, estimated }: RerankResult,
  { id, service, providerName, settlement }: AnsweredCall,
  { documents, return_documents: returnsDocuments }: RerankBody,
  byDefault: boolean,
): object {
  const withDocuments = returnsDocuments ?? byDefault;
  return {
    id,
    object: 'list',
    model: service,
    provider: providerName,
    results: results.map((each) => (withDocuments ? { ...each, document: asObject(documents[each.index]!) } : each)),
    meta: { api_version: { version: '2' }, billed_units: { search_units: searchUnits } },
    usage: {
      ...(tokens === null ? {} : { prompt_tokens: tokens, total_tokens: tokens }),
      search_units: searchUnits,
      ...(estimated ? { estimated } : {}),
      ...costMembers(settlement),
    },
  };
}

const asObject = (document: RerankDocument): Exclude<RerankDocument, string> =>
  typeof document === 'string' ? { text: document } : document;
