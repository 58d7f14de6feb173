import type { ModelFacts } from '#config';

/** Whether a model makes embeddings. */
export const isEmbedder = ({ outputModalities }: Pick<ModelFacts, 'outputModalities'>): boolean =>
  outputModalities.includes('embeddings') || outputModalities.includes('embedding');

/** Whether a model can be called for chat. A model that makes embeddings can be, if it names text first. */
export const chats = (model: Pick<ModelFacts, 'outputModalities'>): boolean =>
  model.outputModalities[0] === 'text' || !isEmbedder(model);
