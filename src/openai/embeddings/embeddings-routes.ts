import type { Settlement } from '#billing/amounts';
import type { PassedWire } from '../passing/passed-route.ts';
import { costMembers } from '../passing/write-answer.ts';
import type { EmbeddingsResult } from './embeddings-reader.ts';
import {
  checkInput,
  EMBEDDINGS_PARAMETERS,
  embeddingsAnswerSchema,
  type EmbeddingsBody,
  embeddingsSchema,
} from './embeddings-schema.ts';
import { embeddingsToCall } from './embeddings-to-call.ts';

export const EMBEDDINGS_WIRE: PassedWire<EmbeddingsBody, EmbeddingsResult> = {
  kind: 'embeddings',
  described: {
    operationId: 'createEmbeddings',
    description:
      'Embeddings of texts or tokens by a model whose output is embeddings. The price is per input token. Fields that are not listed here go to providers that list them.',
  },
  noun: 'Embeddings',
  schema: embeddingsSchema,
  parameters: EMBEDDINGS_PARAMETERS,
  answerSchema: embeddingsAnswerSchema,
  addresses: [],
  check: checkInput,
  toCall: embeddingsToCall,
  answer: (result, { service, settlement }) => piecesOf(result, settlement, service),
};

/** The provider's bytes, with the name that was called and the billed usage. Not empty. */
function piecesOf(
  { bytes, members, memberNames, usage }: EmbeddingsResult,
  settlement: Settlement,
  service: string,
): readonly Uint8Array[] {
  const values = { usage: JSON.stringify({ ...usage, ...costMembers(settlement) }), model: JSON.stringify(service) };
  const pieces: Uint8Array[] = [];
  let at = 0;
  for (const { name, start, end } of members) {
    pieces.push(bytes.subarray(at, start), Buffer.from(values[name]));
    at = end;
  }
  const missing = (['model', 'usage'] as const).filter(
    (name) => !memberNames.has(name) && !members.some((member) => member.name === name),
  );
  if (missing.length === 0) return [...pieces, bytes.subarray(at)];
  const brace = bytes.lastIndexOf('}');
  const added = missing.map((name) => `,"${name}":${values[name]}`).join('');
  return [...pieces, bytes.subarray(at, brace), Buffer.from(`${added}}`)];
}
