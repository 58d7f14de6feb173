import { generateKeyPairSync } from 'node:crypto';
import type { VendorReply, VendorRequest } from './scene.ts';

/* Vendors that speak and write down speech, each in its own wire. */

export const WORDS = 'What is a tollgate?';
/**
 * Seconds of the file, those that a vendor tells who tells any, and the end of the last word, which some packages take
 * for them.
 */
export const [FILE_S, TOLD_S, WORD_S] = [8.5, 7.2, 6.1] as const;

/** The sound of each reply: the beginning of an MP3 frame, and bytes. */
export const SOUND = Buffer.concat([
  Buffer.from([0xff, 0xfb, 0x90, 0x64]),
  Buffer.from(Array.from({ length: 20_000 }, (_, at) => at % 251)),
]);
/** The same as a vendor answers that makes nothing but WAV. */
export const WAV = Buffer.concat([Buffer.from('RIFF\0\0\0\0WAVEfmt '), SOUND]);

/** Prices of a block, in USD: a million characters or tokens, or a minute. */
export const PRICES = {
  characters: 'prompt = 0, completion = 0, character = 15',
  minutes: 'prompt = 0, completion = 0, per_minute = 0.006',
  tokens: 'prompt = 1, completion = 10',
} as const;

interface SoundKind {
  readonly model: string;
  /** What the vendor tells of its usage, and so what a block with this price is charged by. */
  readonly pays: keyof typeof PRICES;
  /** Whose seconds count, where these have a price. */
  readonly by?: 'seconds' | 'file';
  /** Micro-USD of the call. */
  readonly cost: number;
}

/** A package, and its vendor as a test plays it. */
export interface SoundVendor {
  readonly name: string;
  readonly sdk?: string;
  readonly settings: (url: string) => Readonly<Record<string, string>>;
  readonly secrets?: Readonly<Record<string, string>>;
  /** Its vendor's address is in its code. */
  readonly routed?: true;
  readonly speaks?: SoundKind & { readonly makes?: 'wav' };
  readonly hears?: SoundKind;
  readonly answer: (request: VendorRequest) => VendorReply;
  readonly key: (headers: VendorRequest['headers']) => boolean;
}

const bearer = (headers: VendorRequest['headers']) => headers['authorization'] === 'Bearer apiKey-secret';
const header = (name: string, before: string) => (headers: VendorRequest['headers']) =>
  headers[name] === `${before}apiKey-secret`;
const base = (path: string) => (url: string) => ({ baseURL: `${url}${path}` });
const routed = { settings: (url: string) => ({ vendor: url }), routed: true } as const;

const sound: VendorReply = { bytes: SOUND, type: 'audio/mpeg' };
/** 17 characters for 15 USD a million. */
const BY_CHARACTER = { pays: 'characters', cost: 255 } as const;
/** 0.006 USD a minute, for the whole seconds that the vendor tells: 8, or those of the file: 9. */
const BY_ITS_SECONDS = { pays: 'minutes', by: 'seconds', cost: 800 } as const;
const BY_THE_FILE = { pays: 'minutes', by: 'file', cost: 900 } as const;
/** Tokens for 1 USD a million in, and 10 out. */
const [HEARD, SPOKEN] = [
  { in: 100, out: 20 },
  { in: 10, out: 100 },
] as const;
const BY_HEARD_TOKENS = { pays: 'tokens', cost: 100 + 200 } as const;
const BY_SPOKEN_TOKENS = { pays: 'tokens', cost: 10 + 1000 } as const;

const segment = {
  id: 0,
  seek: 0,
  start: 0,
  end: WORD_S,
  text: WORDS,
  tokens: [1],
  temperature: 0,
  avg_logprob: 0,
  compression_ratio: 1,
  no_speech_prob: 0,
};
const word = { start: 0, end: WORD_S, text: WORDS };
const whisper = { task: 'transcribe', language: 'english', duration: TOLD_S, text: WORDS, segments: [segment] };

/** Speech and transcriptions of Gemini's API, as AI Studio and Vertex have it. */
function gemini({ path, text }: VendorRequest): VendorReply {
  if (path === '/token') return { json: { access_token: 'apiKey-secret' } };
  if (path.endsWith('/interactions')) {
    const content = [{ type: 'text', text: WORDS }];
    const usage = { total_input_tokens: HEARD.in, total_output_tokens: HEARD.out };
    return { json: { status: 'completed', steps: [{ type: 'model_output', content }], usage } };
  }
  const speaks = text.includes('responseModalities');
  const parts = speaks
    ? [{ inlineData: { mimeType: 'audio/wav', data: WAV.toString('base64') } }]
    : [{ text: WORDS, audioTranscription: { text: WORDS } }];
  const tokens = speaks ? SPOKEN : HEARD;
  const usageMetadata = { promptTokenCount: tokens.in, candidatesTokenCount: tokens.out };
  return { json: { candidates: [{ content: { parts } }], usageMetadata } };
}

export const SOUND_VENDORS: readonly SoundVendor[] = [
  {
    name: 'openai',
    settings: base('/v1'),
    speaks: { model: 'tts-1', ...BY_CHARACTER },
    hears: { model: 'whisper-1', ...BY_ITS_SECONDS },
    answer: ({ path }) =>
      path.endsWith('/speech') ? sound : { json: { ...whisper, usage: { type: 'duration', seconds: 8 } } },
    key: bearer,
  },
  {
    name: 'azure',
    settings: base('/openai'),
    speaks: { model: 'tts-1', ...BY_CHARACTER },
    hears: { model: 'whisper-1', ...BY_ITS_SECONDS },
    answer: ({ path }) => (path.includes('/speech') ? sound : { json: whisper }),
    key: header('api-key', ''),
  },
  {
    name: 'mistral',
    settings: base('/v1'),
    speaks: { model: 'voxtral-mini-tts-2603', ...BY_CHARACTER },
    hears: { model: 'voxtral-mini-latest', ...BY_ITS_SECONDS },
    answer: ({ path }) =>
      path.endsWith('/speech')
        ? { json: { audio_data: SOUND.toString('base64') } }
        : {
            json: {
              model: 'voxtral-mini-latest',
              text: WORDS,
              language: 'en',
              segments: [segment],
              usage: { prompt_audio_seconds: 8, prompt_tokens: 4, completion_tokens: 8, total_tokens: 12 },
            },
          },
    key: bearer,
  },
  {
    name: 'groq',
    settings: base('/openai/v1'),
    hears: { model: 'whisper-large-v3', ...BY_ITS_SECONDS },
    answer: () => ({ json: { ...whisper, x_groq: { id: 'r' } } }),
    key: bearer,
  },
  {
    name: 'xai',
    settings: base('/v1'),
    speaks: { model: 'grok-tts', ...BY_CHARACTER },
    hears: { model: 'grok-stt', ...BY_ITS_SECONDS },
    answer: ({ path }) =>
      path.endsWith('/tts') ? sound : { json: { text: WORDS, language: 'en', duration: TOLD_S, words: [word] } },
    key: bearer,
  },
  {
    name: 'google',
    settings: base('/v1beta'),
    speaks: { model: 'gemini-3.8-tts', ...BY_SPOKEN_TOKENS, makes: 'wav' },
    hears: { model: 'gemini-3.5-transcribe', ...BY_HEARD_TOKENS },
    answer: gemini,
    key: header('x-goog-api-key', ''),
  },
  {
    name: 'google-vertex',
    sdk: '@ai-sdk/google-vertex/edge',
    routed: true,
    settings: (url) => ({
      vendor: url,
      project: 'acme',
      location: 'europe-west4',
      'googleCredentials.clientEmail': 'speaker@acme.example',
    }),
    secrets: { 'googleCredentials.privateKey': newServiceKey() },
    speaks: { model: 'gemini-2.5-flash-tts', ...BY_SPOKEN_TOKENS, makes: 'wav' },
    hears: { model: 'gemini-3.5-transcribe', ...BY_HEARD_TOKENS },
    answer: gemini,
    key: bearer,
  },
  {
    name: 'elevenlabs',
    ...routed,
    speaks: { model: 'eleven_multilingual_v2', ...BY_CHARACTER },
    hears: { model: 'scribe_v1', ...BY_THE_FILE },
    answer: ({ path }) =>
      path.startsWith('/v1/text-to-speech/')
        ? sound
        : {
            json: {
              language_code: 'en',
              language_probability: 1,
              text: WORDS,
              words: [{ ...word, type: 'word' }],
            },
          },
    key: header('xi-api-key', ''),
  },
  {
    name: 'deepgram',
    ...routed,
    speaks: { model: 'aura-2-helena-en', ...BY_CHARACTER },
    hears: { model: 'nova-3', ...BY_ITS_SECONDS },
    answer: ({ path }) =>
      path.startsWith('/v1/speak')
        ? sound
        : {
            json: {
              metadata: { duration: TOLD_S },
              results: {
                channels: [
                  { detected_language: 'en', alternatives: [{ transcript: WORDS, words: [{ ...word, word: WORDS }] }] },
                ],
              },
            },
          },
    key: header('authorization', 'Token '),
  },
  {
    name: 'lmnt',
    ...routed,
    speaks: { model: 'blizzard', ...BY_CHARACTER },
    answer: () => sound,
    key: header('x-api-key', ''),
  },
  {
    name: 'hume',
    ...routed,
    speaks: { model: 'octave', ...BY_CHARACTER },
    answer: () => sound,
    key: header('x-hume-api-key', ''),
  },
  {
    name: 'assemblyai',
    ...routed,
    hears: { model: 'universal-3-5-pro', ...BY_ITS_SECONDS },
    answer: ({ path, origin }) => {
      if (path === '/v2/upload') return { json: { upload_url: `${origin}/file` } };
      const job = { id: 'j', status: 'completed' };
      if (path === '/v2/transcript') return { json: job };
      const words = [{ ...word, end: WORD_S * 1000, confidence: 1 }];
      return { json: { ...job, text: WORDS, language_code: 'en', words, audio_duration: 8 } };
    },
    key: header('authorization', ''),
  },
  {
    name: 'gladia',
    ...routed,
    hears: { model: 'default', ...BY_ITS_SECONDS },
    answer: ({ path }) => {
      if (path === '/v2/upload') return { json: { audio_url: 'https://api.gladia.io/file' } };
      if (path === '/v2/pre-recorded') return { json: { result_url: 'https://api.gladia.io/result' } };
      const transcription = { full_transcript: WORDS, languages: ['en'], utterances: [word] };
      return { json: { status: 'done', result: { metadata: { audio_duration: TOLD_S }, transcription } } };
    },
    key: header('x-gladia-key', ''),
  },
  {
    name: 'revai',
    ...routed,
    hears: { model: 'machine', ...BY_THE_FILE },
    answer: ({ path }) =>
      path.endsWith('/transcript')
        ? { json: { monologues: [{ elements: [{ type: 'text', value: WORDS, ts: 0, end_ts: WORD_S }] }] } }
        : { json: { id: 'j', status: 'transcribed', language: 'en' } },
    key: bearer,
  },
  {
    name: 'fal',
    ...routed,
    speaks: { model: 'fal-ai/minimax/speech-02-hd', ...BY_CHARACTER },
    hears: { model: 'whisper', ...BY_THE_FILE },
    answer: ({ path, method }) => {
      if (path.endsWith('.mp3')) return sound;
      if (path.includes('/speech-02-hd')) return { json: { audio: { url: 'https://fal.run/made.mp3' } } };
      if (method === 'POST') return { json: { request_id: 'j' } };
      return { json: { text: WORDS, chunks: [{ text: WORDS, timestamp: [0, WORD_S] }] } };
    },
    key: header('authorization', 'Key '),
  },
];

/** The key of a service account, with which the package signs its own tokens. */
function newServiceKey(): string {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return privateKey.export({ type: 'pkcs8', format: 'pem' });
}
