import { imageTokensMax } from '#config';
import { tokenizedBytes, isOwn, type Offer } from '#catalog';

import { tokensOf } from '../chat/request/prompt-size.ts';
import type { RerankBody, RerankDocument } from './rerank-schema.ts';

/** The size of a query with its documents, measured once: a tokenizer makes at most one token of a byte. */
interface SearchSize {
  /** Bytes of the query. */
  readonly query: number;
  /** Bytes of each document. */
  readonly documents: readonly number[];
  readonly images: number;
}

/** A search unit is a query with up to so many documents. */
const DOCUMENTS_PER_UNIT = 100;
/** A document that has more tokens together with the query counts once for each so many. */
const TOKENS_PER_PIECE = 500;
/** Tokens that a model may put around a query and a document. */
const TOKENS_OF_FRAME = 16;

/** The whole documents count, because a provider may not know `max_tokens_per_doc`, and reads and bills all of them. */
export function measureSearch({ query, documents }: RerankBody): SearchSize {
  return {
    query: tokenizedBytes(query),
    documents: documents.map(bytesOf),
    images: documents.filter(hasImage).length,
  };
}

const hasImage = (document: RerankDocument): boolean =>
  typeof document === 'object' && document['image'] !== undefined && document['image'] !== null;

/** A picture has its own bound of tokens, so its data does not count. */
function bytesOf(document: RerankDocument): number {
  if (typeof document === 'string') return tokenizedBytes(document);
  const { image: _image, ...rest } = document;
  return tokenizedBytes(JSON.stringify(hasImage(document) ? rest : document));
}

/** Tokens that a model reads, if `count` gives those of so many bytes: it reads the query with each document. */
function tokens({ query, documents, images }: SearchSize, offer: Offer, count: (bytes: number) => number) {
  const ofQuery = count(query);
  const facts = offer.model!;
  let sum = images * imageTokensMax(facts, isOwn(offer));
  for (const bytes of documents) sum += Math.min(ofQuery + count(bytes) + TOKENS_OF_FRAME, facts.contextLength);
  return sum;
}

/** Search units, if `count` gives the tokens of so many bytes. */
function units({ query, documents, images }: SearchSize, count: (bytes: number) => number): number {
  const ofQuery = count(query);
  let pieces = images;
  for (const bytes of documents) pieces += Math.max(1, Math.ceil((ofQuery + count(bytes)) / TOKENS_PER_PIECE));
  return Math.ceil(pieces / DOCUMENTS_PER_UNIT);
}

const bytesAreTokens = (bytes: number) => bytes;

/** The most tokens, and the most search units, that a request can use. They are locked. */
export const tokensMax = (size: SearchSize, offer: Offer): number => tokens(size, offer, bytesAreTokens);
export const unitsMax = (size: SearchSize): number => units(size, bytesAreTokens);

/** The use of a request as its length tells it, for a reply that does not say. */
export const usualTokens = (size: SearchSize, offer: Offer): number => tokens(size, offer, tokensOf);
export const usualUnits = (size: SearchSize): number => units(size, tokensOf);
