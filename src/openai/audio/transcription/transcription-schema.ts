import { MODEL_KINDS } from '#config/model-kinds';
import { formSchema, MUST_BE, nameSchema, objectField } from '#http';
import { type ProviderPreferences, routingFields } from '#call';
import { FORMATS_IN_WORDS } from '../measure/measure-audio.ts';

export const TRANSCRIPT_TYPES = {
  json: null,
  text: 'text/plain; charset=utf-8',
  srt: 'text/plain; charset=utf-8',
  verbose_json: null,
  vtt: 'text/vtt; charset=utf-8',
  diarized_json: null,
} as const;
export type TranscriptFormat = keyof typeof TRANSCRIPT_TYPES;

export interface TranscriptionRoute {
  readonly path: (typeof MODEL_KINDS)['transcription']['paths'][number];
  readonly formats: readonly TranscriptFormat[];
  readonly streams: boolean;
  readonly described: { readonly summary: string; readonly operationId: string; readonly description: string };
}

const COMMON =
  'The body is a form with the file. The price is per minute of sound, or per token. The gateway measures the sound in the file, and locks its price. Fields that are not listed here go to providers that list them.';

export const TRANSCRIPTION_ROUTES: readonly TranscriptionRoute[] = [
  {
    path: '/audio/transcriptions',
    formats: ['json', 'text', 'srt', 'verbose_json', 'vtt', 'diarized_json'],
    streams: true,
    described: {
      summary: MODEL_KINDS.transcription.summary,
      operationId: 'createTranscription',
      description: `Writes down what is said in a file, by a model whose output is a transcription. ${COMMON}`,
    },
  },
  {
    path: '/audio/translations',
    formats: ['json', 'text', 'srt', 'verbose_json', 'vtt'],
    streams: false,
    described: {
      summary: 'Translate a file to English',
      operationId: 'createTranslation',
      description: `Writes down in English what is said in a file, by a model whose output is a transcription. ${COMMON}`,
    },
  },
];

export interface TranscriptionBody {
  readonly model: string;
  readonly response_format?: TranscriptFormat | null;
  readonly stream?: boolean | null;
  readonly provider?: ProviderPreferences | null;
  readonly session_id?: string | null;
  readonly max_cost?: number | string | null;
  readonly metadata?: Record<string, unknown> | null;
  readonly [field: string]: unknown;
}

const texts = (description: string, maxItems: number, maxLength: number) => ({
  type: 'array',
  maxItems,
  items: { type: 'string', maxLength, [MUST_BE]: `a text of at most ${maxLength} characters` },
  description,
  [MUST_BE]: `at most ${maxItems} texts`,
});

const { provider, session_id: session, max_cost: maxCost } = routingFields;

const SAMPLES_MAX = 4;
const PROMPT_MAX = 16_384;

const published = {
  language: {
    type: 'string',
    maxLength: 32,
    description: 'The language of the sound, such as `en`.',
    [MUST_BE]: 'a language, such as en',
  },
  languages: texts('Languages that the sound may have.', 64, 32),
  prompt: {
    type: 'string',
    maxLength: PROMPT_MAX,
    description: 'Words that guide the model.',
    [MUST_BE]: `a text of at most ${PROMPT_MAX} characters`,
  },
  keywords: texts('Words that may be said.', 1_000, 256),
  temperature: {
    type: 'number',
    minimum: 0,
    maximum: 2,
    description: 'Sampling temperature.',
    [MUST_BE]: 'a number from 0 to 2',
  },
  timestamp_granularities: texts('`word` or `segment`, for `verbose_json`.', 8, 32),
  include: texts('`logprobs`.', 8, 64),
  chunking_strategy: {
    type: ['string', 'object'],
    description: '`auto`, or an object with the settings of `server_vad`.',
    [MUST_BE]: 'auto or an object',
  },
  known_speaker_names: texts('Names of voices, for `diarized_json`.', SAMPLES_MAX, 256),
  known_speaker_references: texts('A sample of each named voice, as a data URL.', SAMPLES_MAX, 2 * 1024 * 1024),
} as const;

export const TRANSCRIPTION_PARAMETERS: readonly string[] = [...Object.keys(published), 'response_format', 'stream'];

const propertiesOf = ({ formats, streams }: TranscriptionRoute) => ({
  model: {
    ...nameSchema,
    description: 'A model whose output is a transcription.',
    [MUST_BE]: 'the name of a model: 1 to 256 characters without control characters',
  },
  ...(streams
    ? {
        ...published,
        stream: {
          type: 'boolean',
          description:
            'Answer with events: `transcript.text.delta`, and `transcript.text.done` with the usage and its cost.',
          [MUST_BE]: 'true or false',
        },
      }
    : { prompt: published.prompt, temperature: published.temperature }),
  response_format: {
    enum: formats,
    description: 'The format of the transcript. Default `json`.',
    [MUST_BE]: `one of ${formats.join(', ')}`,
  },
  provider,
  session_id: session,
  max_cost: maxCost,
  metadata: objectField('Key and value pairs for the logs. Not forwarded to the provider.'),
});

export const transcriptionSchema = (route: TranscriptionRoute) => ({
  title: route.streams ? 'TranscriptionRequest' : 'TranslationRequest',
  type: 'object',
  required: ['model'],
  additionalProperties: true,
  [MUST_BE]: 'a form with a file',
  properties: propertiesOf(route),
});

export const transcriptionForm = (route: TranscriptionRoute) =>
  formSchema({
    properties: propertiesOf(route),
    required: ['model', 'file'],
    files: { file: `The file: ${FORMATS_IN_WORDS}.` },
    example: { model: 'demo/transcription', file: '<the bytes of a WAV file>' },
  });
