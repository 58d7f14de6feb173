import { GatewayError } from '#errors';
import type { ModelFacts } from '#config';

/* What a model makes, and where it is called. */

type Made = Pick<ModelFacts, 'outputModalities'>;

/** Kinds of output that are made at a route of their own, with that route below the base URL and words for an error. */
const ROUTES = {
  embeddings: { path: '/embeddings', words: 'makes embeddings' },
  embedding: { path: '/embeddings', words: 'makes embeddings' },
  rerank: { path: '/rerank', words: 'sorts documents' },
  moderation: { path: '/moderations', words: 'judges content' },
} as const;
type Kind = keyof typeof ROUTES;

const kindOf = ({ outputModalities }: Made): Kind | null =>
  outputModalities.find((kind): kind is Kind => Object.hasOwn(ROUTES, kind)) ?? null;

/** Whether a model makes embeddings. */
export const isEmbedder = ({ outputModalities }: Made): boolean =>
  outputModalities.includes('embeddings') || outputModalities.includes('embedding');

/** Whether a model sorts documents by their relevance to a query. */
export const reranks = ({ outputModalities }: Made): boolean => outputModalities.includes('rerank');

/** Whether a model judges content. */
export const moderates = ({ outputModalities }: Made): boolean => outputModalities.includes('moderation');

/** Whether a model can be called for chat. One that makes something else too can be, if it names text first. */
export const chats = (model: Made): boolean => model.outputModalities[0] === 'text' || kindOf(model) === null;

/** The route of a model, below the base URL. */
const routeOf = (model: Made): string => {
  const kind = chats(model) ? null : kindOf(model);
  return kind === null ? '/chat/completions' : ROUTES[kind].path;
};

/** The error for a model that is called at the route of another kind. `does`: such as `makes no embeddings`. */
export const calledElsewhere = (service: string, model: Made, does: string): GatewayError =>
  new GatewayError('unprocessable', `${service} ${does}. Call it at ${routeOf(model)}`, { param: 'model' });

/** The error for a chat with a model that does not chat. */
export const noChat = (service: string, model: Made): GatewayError =>
  calledElsewhere(service, model, ROUTES[kindOf(model)!].words);
