import type { JsonObject } from '#wire';
import type { EmbeddingModelV4, EmbeddingModelV4Result } from '@ai-sdk/provider';
import { type Loaded, sendJson, type WorkerCall } from './worker-call.ts';
import { RequestFault } from './fault.ts';
import { numberOf, stringOf } from './json.ts';
import { optionsOf } from './provider-options.ts';

export async function answerEmbeddings({ provider }: Loaded, { body, stream, signal }: WorkerCall): Promise<void> {
  const modelId = stringOf(body['model']) ?? '';
  const model = provider.embeddingModel(modelId);
  const results = await embed(model, textsOf(body['input']), body, signal);
  const base64 = body['encoding_format'] === 'base64';
  const data = results
    .flatMap(({ embeddings }) => embeddings)
    .map((embedding, index) => ({
      object: 'embedding',
      index,
      embedding: base64 ? Buffer.from(new Float32Array(embedding).buffer).toString('base64') : embedding,
    }));
  const warnings = results.flatMap((result) => result.warnings);
  const tokens = usedBy(results);
  if (stream.destroyed) return;
  sendJson(stream, {
    object: 'list',
    model: modelId,
    data,
    ...(tokens === null ? {} : { usage: { prompt_tokens: tokens, total_tokens: tokens } }),
    ...(warnings.length === 0 ? {} : { warnings }),
  });
}

function textsOf(input: unknown): string[] {
  const texts = typeof input === 'string' ? [input] : input;
  if (Array.isArray(texts) && texts.every((one) => typeof one === 'string')) return texts;
  throw new RequestFault('input must be text, or a list of texts: the AI SDK takes no tokens', { param: 'input' });
}

async function embed(
  model: EmbeddingModelV4,
  values: readonly string[],
  { dimensions, provider_options: own }: JsonObject,
  abortSignal: AbortSignal,
): Promise<readonly EmbeddingModelV4Result[]> {
  const most = (await model.maxEmbeddingsPerCall) ?? values.length;
  const providerOptions = optionsOf(own, 'provider_options');
  const length = numberOf(dimensions);
  const results: EmbeddingModelV4Result[] = [];
  for (let at = 0; at < values.length; at += most)
    results.push(
      await model.doEmbed({
        values: values.slice(at, at + most),
        abortSignal,
        ...(length === undefined ? {} : { dimensions: length }),
        ...(providerOptions ? { providerOptions } : {}),
      }),
    );
  return results;
}

/** Tokens of all results together; null if one of them does not say. */
function usedBy(results: readonly EmbeddingModelV4Result[]): number | null {
  const each = results.map(({ usage }) => usage?.tokens);
  return each.every((tokens) => Number.isFinite(tokens)) ? each.reduce<number>((all, one) => all + one!, 0) : null;
}
