import type { ModelFacts } from '#config';

/** Whether a model makes embeddings. */
export const isEmbedder = ({ outputModalities }: Pick<ModelFacts, 'outputModalities'>): boolean =>
  outputModalities.includes('embeddings') || outputModalities.includes('embedding');
