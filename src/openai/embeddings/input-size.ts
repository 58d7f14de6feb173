import type { Offer } from '#gateway';
import type { EmbeddingsBody } from './embeddings-schema.ts';

/** The size of the inputs. */
export interface InputSize {
  /** The most tokens of each input: its bytes, or its number of tokens if the input is tokens. */
  readonly each: readonly number[];
  /** The inputs are tokens. */
  readonly counted: boolean;
}

/** Tokens that a service may put around an input: special tokens, and its own words for the task. */
const TOKENS_OF_FRAME = 16;
/** The special tokens at the beginning and the end of an input. */
const TOKENS_OF_ENDS = 2;

export function measureInput({ input }: Pick<EmbeddingsBody, 'input'>): InputSize {
  if (typeof input === 'string') return { each: [Buffer.byteLength(input)], counted: false };
  if (typeof input[0] === 'number') return { each: [input.length], counted: true };
  if (typeof input[0] === 'string')
    return { each: (input as readonly string[]).map((text) => Buffer.byteLength(text)), counted: false };
  return { each: (input as readonly (readonly number[])[]).map(({ length }) => length), counted: true };
}

/** The most tokens that a model with this context makes of the inputs. They are locked. */
export const tokensMax = (size: InputSize, contextLength: number): number =>
  tokensWith(TOKENS_OF_FRAME, size, contextLength);

/**
 * The most tokens that are charged. A provider that dialled in cannot be trusted to add its own words to each of 2,048
 * inputs of one letter, which would cost seventeen times the input.
 */
export const plausibleTokens = (size: InputSize, { endpoint, model }: Pick<Offer, 'endpoint' | 'model'>): number =>
  tokensWith(endpoint.kind === 'direct' ? TOKENS_OF_FRAME : TOKENS_OF_ENDS, size, model!.contextLength);

const tokensWith = (frame: number, { each }: InputSize, contextLength: number): number =>
  each.reduce((sum, one) => sum + Math.min(one + frame, contextLength), 0);
