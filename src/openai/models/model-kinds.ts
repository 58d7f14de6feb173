import { GatewayError } from '#errors';
import type { ModelFacts } from '#config';
import type { Offer } from '#catalog';

/* The kinds of models, each with the route that calls it. A model may be of several kinds. */

type Outputs = Pick<ModelFacts, 'outputModalities'>;

/** Whether a model makes embeddings. */
export const isEmbedder = ({ outputModalities }: Outputs): boolean =>
  outputModalities.includes('embeddings') || outputModalities.includes('embedding');

/** Whether a model speaks texts. */
export const speaks = ({ outputModalities }: Outputs): boolean => outputModalities.includes('speech');

/** Whether a model writes down what is said in a file. */
export const transcribes = ({ outputModalities }: Outputs): boolean => outputModalities.includes('transcription');

/** Whether a model can be called for chat. A model of another kind can be, if it names text first. */
export const chats = (model: Outputs): boolean => model.outputModalities[0] === 'text' || routeOf(model) === null;

/** The work of a model of another kind than chat, and its route. null for a chat model. */
function routeOf(model: Outputs): { readonly does: string; readonly path: string } | null {
  if (isEmbedder(model)) return { does: 'makes embeddings', path: '/embeddings' };
  if (speaks(model)) return { does: 'makes speech', path: '/audio/speech' };
  return transcribes(model) ? { does: 'transcribes files', path: '/audio/transcriptions' } : null;
}

/** The refusal of a model whose kind another route calls. `not`: what it does not do, such as `makes no embeddings`. */
export function wrongKind({ service, model }: Offer, not: string): GatewayError {
  const { does, path } = (chats(model!) ? null : routeOf(model!)) ?? { does: null, path: '/chat/completions' };
  return new GatewayError('unprocessable', `${service} ${does ?? not}. Call it at ${path}`, { param: 'model' });
}
