import type { JSONObject, RerankingModelV4CallOptions } from '@ai-sdk/provider';
import { RequestFault } from './fault.ts';
import { isRecord, numberOf, stringOf } from './json.ts';
import { optionsOf } from './provider-options.ts';
import { type Loaded, sendJson, type WorkerCall } from './worker-call.ts';

/** Answers a request to rerank documents, in the form of Cohere's API. */
export async function answerRerank({ provider }: Loaded, { body, stream, signal }: WorkerCall): Promise<void> {
  const modelId = stringOf(body['model']) ?? '';
  const model = provider.rerankingModel?.(modelId);
  if (model === undefined)
    throw new RequestFault('This package of the AI SDK has no reranking models', { status: 404 });
  const topN = numberOf(body['top_n']);
  const perDocument = numberOf(body['max_tokens_per_doc']);
  const own = optionsOf(body['provider_options'], 'provider_options');
  const [vendor = ''] = model.provider.split('.');
  const providerOptions =
    perDocument === undefined ? own : { ...own, [vendor]: { maxTokensPerDoc: perDocument, ...own?.[vendor] } };
  const {
    ranking,
    warnings = [],
    response,
  } = await model.doRerank({
    documents: documentsOf(body['documents']),
    query: stringOf(body['query']) ?? '',
    abortSignal: signal,
    ...(topN === undefined ? {} : { topN }),
    ...(providerOptions ? { providerOptions } : {}),
  });
  if (stream.destroyed) return;
  const reply = isRecord(response?.body) ? response.body : {};
  sendJson(stream, {
    model: modelId,
    results: ranking.map(({ index, relevanceScore }) => ({ index, relevance_score: relevanceScore })),
    // The AI SDK has no usage of a reranking model. What the vendor said of it is in the reply.
    ...(isRecord(reply['meta']) ? { meta: reply['meta'] } : {}),
    ...(isRecord(reply['usage']) ? { usage: reply['usage'] } : {}),
    ...(warnings.length === 0 ? {} : { warnings }),
  });
}

/** Texts stay texts. A list with objects is one of objects, of which a package makes texts itself. */
function documentsOf(documents: unknown): RerankingModelV4CallOptions['documents'] {
  if (!Array.isArray(documents)) throw new RequestFault('documents must be a list', { param: 'documents' });
  const texts = (documents as readonly unknown[]).map((one) => (isRecord(one) ? stringOf(one['text']) : stringOf(one)));
  if (texts.every((text) => text !== undefined)) return { type: 'text', values: texts };
  return {
    type: 'object',
    values: documents.map((one) => (isRecord(one) ? one : { text: one as string }) as JSONObject),
  };
}
