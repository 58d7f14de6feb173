import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

type Json = Record<string, unknown>;

/** What a reranker answers instead of, or beside, its results. */
export interface RerankerAnswer {
  readonly status?: number;
  readonly body?: object | string;
  /** Members beside `results`. */
  readonly more?: object;
  readonly results?: readonly object[];
}

export interface Reranker {
  /** Base URL with `/v1`. */
  readonly url: string;
  readonly asked: { readonly path: string; readonly body: Json }[];
  /** How the next requests are answered. */
  answer: (body: Json) => RerankerAnswer;
  stop(): Promise<void>;
}

const wordsOf = (text: string) => new Set(text.toLowerCase().match(/[a-z]+/g));

/** Scores documents by the share of the words of the query that they have, in the order of the request. */
export function scored({ query, documents, top_n: most }: Json): readonly { index: number; relevance_score: number }[] {
  const words = wordsOf(query as string);
  const results = (documents as (string | { text?: string })[]).map((document, index) => {
    const own = wordsOf(typeof document === 'string' ? document : (document.text ?? ''));
    return { index, relevance_score: [...words].filter((word) => own.has(word)).length / words.size };
  });
  return results.toSorted((a, b) => b.relevance_score - a.relevance_score).slice(0, (most as number) ?? Infinity);
}

/** A service with the API of a reranker. */
export async function startReranker(): Promise<Reranker> {
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (part: string) => (text += part));
    request.on('end', () => {
      const body = JSON.parse(text) as Json;
      reranker.asked.push({ path: request.url ?? '', body });
      const { status = 200, body: given, more = {}, results } = reranker.answer(body);
      const reply = given ?? { results: results ?? scored(body), ...more };
      response
        .writeHead(status, { 'content-type': 'application/json' })
        .end(typeof reply === 'string' ? reply : JSON.stringify(reply));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const reranker: Reranker = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    asked: [],
    answer: () => ({}),
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
  return reranker;
}

/** What Cohere's API says beside the results. */
export const cohere = (searchUnits: number) => ({
  id: 'c1',
  meta: { api_version: { version: '2' }, billed_units: { search_units: searchUnits } },
});
/** What Jina's API says beside the results. */
export const jina = (tokens: number) => ({ model: 'jina', object: 'list', usage: { total_tokens: tokens } });

interface RerankBlock {
  readonly name: string;
  readonly provider: string;
  readonly url: string;
  /** Lines of `[models.pricing]` beside `prompt` and `completion`. */
  readonly pricing?: string;
  readonly prompt?: number;
  readonly lines?: string;
  readonly params?: string;
  readonly modality?: 'rerank' | 'moderation';
}

export const rerankBlock = (block: RerankBlock): string => `
[[models]]
name = "${block.name}"
display_name = "${block.provider}: Sorter"
provider_name = "${block.provider}"
context_length = 4096
output_modalities = ["${block.modality ?? 'rerank'}"]
${block.lines ?? ''}
[models.pricing]
prompt = ${block.prompt ?? 0}
completion = 0
${block.pricing ?? ''}
[models.params]
model = "upstream-${block.provider}"
api_base = "${block.url}"
api_key = "std::env::TEST_UPSTREAM_KEY"
${block.params ?? ''}
`;
