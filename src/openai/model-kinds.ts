import { GatewayError } from '#errors';
import type { ModelFacts } from '#config';
import type { Offer } from '#catalog';

/* The kinds of models, each with the route that calls it. A model may be of several kinds. */

type Outputs = Pick<ModelFacts, 'outputModalities'>;
type Kinds = Pick<ModelFacts, 'outputModalities' | 'wires'>;

/** Kinds of output that are made at a route of their own: that route below the base URL, and words for an error. */
const ROUTES = {
  embeddings: { path: '/embeddings', does: 'makes embeddings' },
  embedding: { path: '/embeddings', does: 'makes embeddings' },
  speech: { path: '/audio/speech', does: 'makes speech' },
  transcription: { path: '/audio/transcriptions', does: 'transcribes files' },
  rerank: { path: '/rerank', does: 'sorts documents' },
  moderation: { path: '/moderations', does: 'judges content' },
} as const;
type ModelKind = keyof typeof ROUTES;

const kindOf = ({ outputModalities }: Outputs): ModelKind | null =>
  outputModalities.find((kind): kind is ModelKind => Object.hasOwn(ROUTES, kind)) ?? null;

const makes =
  (...kinds: readonly ModelKind[]) =>
  ({ outputModalities }: Outputs): boolean =>
    kinds.some((kind) => outputModalities.includes(kind));

/** Whether a model makes embeddings. */
export const isEmbedder = makes('embeddings', 'embedding');

/** Whether a model speaks texts. */
export const speaks = makes('speech');

/** Whether a model writes down what is said in a file. */
export const transcribes = makes('transcription');

/** Whether a model sorts documents by their relevance to a query. */
export const reranks = makes('rerank');

/** Whether a model judges content. */
export const moderates = makes('moderation');

/** Whether a model is offered over OpenAI's Realtime API alone. */
const isRealtimeOnly = ({ wires }: Kinds): boolean => wires?.every((wire) => wire === 'realtime') === true;

/**
 * Whether a model can be called for chat. A model of another kind can be, if it names text first, and one of the
 * Realtime API, if that is not its only wire.
 */
export const chats = (model: Kinds): boolean =>
  (model.outputModalities[0] === 'text' || kindOf(model) === null) && !isRealtimeOnly(model);

/** The refusal of a model whose kind another route calls. `not`: what it does not do, such as `makes no embeddings`. */
export function wrongKind({ service, model }: Offer, not: string): GatewayError {
  if (isRealtimeOnly(model!))
    return new GatewayError('unprocessable', `${service} is served over WebSocket alone. Open a session at /realtime`, {
      param: 'model',
    });
  const kind = chats(model!) ? null : kindOf(model!);
  const { does, path } = kind === null ? { does: null, path: '/chat/completions' } : ROUTES[kind];
  return new GatewayError('unprocessable', `${service} ${does ?? not}. Call it at ${path}`, { param: 'model' });
}
