import type { EmbeddingsBody } from './embeddings-schema.ts';

/** The size of the inputs. */
export interface InputSize {
  /** The most tokens of each input: its bytes, or its number of tokens if the input is tokens. */
  readonly each: readonly number[];
  /** The inputs are tokens. */
  readonly counted: boolean;
}

/** Special tokens that a model puts around an input. */
const TOKENS_OF_FRAME = 16;

export function measureInput({ input }: Pick<EmbeddingsBody, 'input'>): InputSize {
  if (typeof input === 'string') return { each: [Buffer.byteLength(input)], counted: false };
  if (typeof input[0] === 'number') return { each: [input.length], counted: true };
  if (typeof input[0] === 'string')
    return { each: (input as readonly string[]).map((text) => Buffer.byteLength(text)), counted: false };
  return { each: (input as readonly (readonly number[])[]).map(({ length }) => length), counted: true };
}

/** The most tokens that a model with this context makes of the inputs. */
export const tokensMax = ({ each }: InputSize, contextLength: number): number =>
  each.reduce((sum, one) => sum + Math.min(one + TOKENS_OF_FRAME, contextLength), 0);
