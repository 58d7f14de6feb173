import { MUST_BE, nameSchema, objectField } from '#http';
import { type ProviderPreferences, routingFields } from '#call';

export const SPEECH_TYPES = {
  mp3: 'audio/mpeg',
  opus: 'audio/ogg',
  aac: 'audio/aac',
  flac: 'audio/flac',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
} as const;
export type SpeechFormat = keyof typeof SPEECH_TYPES;

/**
 * The media type of a sound by its first bytes, because some providers make WAV whatever is asked for. The type of the
 * format if they do not show another.
 */
export function speechType(first: Uint8Array, format: SpeechFormat): string {
  const latin = (from: number, to: number) => Buffer.from(first.subarray(from, to)).toString('latin1');
  const signature = latin(0, 4);
  if (signature === 'RIFF' && latin(8, 12) === 'WAVE') return SPEECH_TYPES.wav;
  if (signature === 'OggS') return SPEECH_TYPES.opus;
  if (signature === 'fLaC') return SPEECH_TYPES.flac;
  return SPEECH_TYPES[format];
}

export interface SpeechBody {
  readonly model: string;
  readonly input: string;
  readonly voice: string | { readonly id: string };
  readonly instructions?: string | null;
  readonly response_format?: SpeechFormat | null;
  readonly speed?: number | null;
  readonly stream_format?: 'audio' | 'sse' | null;
  readonly provider?: ProviderPreferences | null;
  readonly session_id?: string | null;
  readonly max_cost?: number | string | null;
  readonly metadata?: Record<string, unknown> | null;
  readonly [field: string]: unknown;
}

export const SPEECH_PARAMETERS: readonly string[] = ['voice', 'instructions', 'response_format', 'speed'];

const INPUT_MAX = 100_000;
const INSTRUCTIONS_MAX = 16_384;
const { provider, session_id: session, max_cost: maxCost } = routingFields;

export const speechSchema = {
  title: 'SpeechRequest',
  type: 'object',
  required: ['model', 'input', 'voice'],
  additionalProperties: true,
  [MUST_BE]: 'a JSON object',
  examples: [{ model: 'demo/speech', input: 'The gate is open.', voice: 'alloy', response_format: 'wav' }],
  properties: {
    model: {
      ...nameSchema,
      description: 'A model whose output is speech.',
      [MUST_BE]: 'the name of a model: 1 to 256 characters without control characters',
    },
    input: {
      type: 'string',
      minLength: 1,
      maxLength: INPUT_MAX,
      description: 'The text to speak. Providers may take less: OpenAI takes 4,096 characters.',
      [MUST_BE]: `a text of 1 to ${INPUT_MAX} characters`,
    },
    voice: {
      type: ['string', 'object'],
      minLength: 1,
      maxLength: 256,
      required: ['id'],
      properties: { id: { type: 'string', minLength: 1, maxLength: 256, [MUST_BE]: 'the id of a voice' } },
      description: "The name of a voice, or `{id}` of one's own. Each provider has its own voices.",
      [MUST_BE]: 'the name of a voice, or an object with its id',
    },
    instructions: {
      type: ['string', 'null'],
      maxLength: INSTRUCTIONS_MAX,
      description: 'How to speak, for models that take it.',
      [MUST_BE]: `a text of at most ${INSTRUCTIONS_MAX} characters`,
    },
    response_format: {
      enum: [...Object.keys(SPEECH_TYPES), null],
      description: 'The format of the sound. Default `mp3`.',
      [MUST_BE]: `one of ${Object.keys(SPEECH_TYPES).join(', ')}`,
    },
    speed: {
      type: ['number', 'null'],
      minimum: 0.25,
      maximum: 4,
      description: 'How fast. Default 1.',
      [MUST_BE]: 'a number from 0.25 to 4',
    },
    stream_format: {
      enum: ['audio', 'sse', null],
      description:
        '`audio` (default): the sound itself, as it comes. `sse`: events `speech.audio.delta` with base64, and `speech.audio.done` with the usage and its cost.',
      [MUST_BE]: 'audio or sse',
    },
    metadata: objectField('Key and value pairs for the logs. Not forwarded to the provider.'),
    provider,
    session_id: session,
    max_cost: maxCost,
  },
} as const;
