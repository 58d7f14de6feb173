import { createHash } from 'node:crypto';
import { isObject, RequestError } from './request.ts';

const DIMENSIONS = 64;
const INPUTS_MAX = 2_048;
const BYTES_PER_TOKEN = 4;

/**
 * Answers `POST /v1/embeddings`. Each word has a vector, and a text's vector is the normalised sum of its words'
 * vectors. So texts with the same words are near each other.
 */
export function embed(body: unknown): object {
  if (!isObject(body)) throw new RequestError('The body must be a JSON object.', null);
  const { model, input, dimensions = DIMENSIONS, encoding_format: format = 'float' } = body;
  const size = dimensions as number;
  if (!Number.isInteger(size) || size < 1 || size > DIMENSIONS)
    throw new RequestError(`dimensions must be an integer from 1 to ${DIMENSIONS}.`, 'dimensions');
  const inputs = inputsOf(input);
  const tokens = inputs.reduce((sum, text) => sum + Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN), 0);
  return {
    object: 'list',
    data: inputs.map((text, index) => {
      const embedding = directionOf(text, size);
      return {
        object: 'embedding',
        index,
        embedding: format === 'base64' ? Buffer.from(embedding.buffer).toString('base64') : [...embedding],
      };
    }),
    model,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  };
}

/** Reads the texts of `input`. Arrays of token numbers are accepted: each number counts as a word. */
function inputsOf(input: unknown): readonly string[] {
  if (typeof input === 'string') return [input];
  if (!Array.isArray(input) || input.length === 0 || input.length > INPUTS_MAX)
    throw new RequestError(`input must be a text, or 1 to ${INPUTS_MAX} of them.`, 'input');
  const list = input as readonly unknown[];
  if (typeof list[0] === 'number') return [list.join(' ')];
  return list.map((one) => (Array.isArray(one) ? one.join(' ') : String(one)));
}

function directionOf(text: string, size: number): Float32Array {
  const sum = new Float32Array(size);
  for (const word of text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? ['']) {
    const bytes = createHash('sha512').update(word).digest();
    for (let at = 0; at < size; at++) sum[at]! += bytes[at]! / 127.5 - 1;
  }
  const length = Math.hypot(...sum) || 1;
  return sum.map((one) => one / length);
}
