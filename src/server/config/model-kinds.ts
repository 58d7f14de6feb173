/* The kinds of models that have a route of their own. What differs between them in words and numbers is here alone. */

interface KindFacts {
  /** Words of `output_modalities` for such a model. The first is the name of the kind. */
  readonly outputs: readonly [string, ...string[]];
  /** Below the base URL of the gateway and of a provider. The first one is named in errors. */
  readonly paths: readonly [`/${string}`, ...`/${string}`[]];
  /** The route for people: `Create embeddings`. */
  readonly summary: string;
  /** For errors: such a model does this, and one of another kind does not. */
  readonly does: string;
  readonly doesNot: string;
  /** Its method of JSON-RPC; absent if its request or its answer is not JSON. */
  readonly method?: string;
  /** The price that only such a model has; absent for none. */
  readonly ownPrice?: 'character' | 'per_minute';
  /** The unit whose price is `per_call`, and its size; absent if it is not charged. */
  readonly perCall?: { readonly unit: string; readonly size?: string };
  /** The fields beside `model` that a request for a quote has; absent if it gets none. */
  readonly quotedBy?: readonly string[];
  /** The use by whose cost the market compares prices, and how much of each price. Absent: 1,000 tokens in and out. */
  readonly typicalUse?: { readonly words: string; readonly units: TypicalUnits };
}

/** The prices that a typical use may have, by their keys of `pricing`. */
export type TypicalUnit = 'prompt' | 'completion' | 'audio' | 'audio_output' | 'character' | 'per_minute';
export type TypicalUnits = Readonly<Partial<Record<TypicalUnit, number>>>;

/**
 * A minute of sound: about 1,000 characters that are read aloud, which are 250 tokens of text. Vendors make 10 to 25
 * tokens of a second of sound, and say the same price for a minute of both.
 */
const MINUTE = { characters: 1_000, textTokens: 250, soundTokens: 1_200 } as const;

export const MODEL_KINDS = {
  embeddings: {
    outputs: ['embeddings', 'embedding'],
    paths: ['/embeddings'],
    summary: 'Create embeddings',
    does: 'makes embeddings',
    doesNot: 'makes no embeddings',
    method: 'embeddings/create',
    quotedBy: ['input'],
  },
  speech: {
    outputs: ['speech'],
    paths: ['/audio/speech'],
    summary: 'Create speech',
    does: 'makes speech',
    doesNot: 'makes no speech',
    ownPrice: 'character',
    quotedBy: ['input', 'voice'],
    typicalUse: {
      words: 'a minute of speech (1,000 characters, or 250 tokens read and 1,200 of sound written)',
      units: { character: MINUTE.characters, prompt: MINUTE.textTokens, audio_output: MINUTE.soundTokens },
    },
  },
  transcription: {
    outputs: ['transcription'],
    paths: ['/audio/transcriptions', '/audio/translations'],
    summary: 'Transcribe a file',
    does: 'transcribes files',
    doesNot: 'makes no transcriptions',
    ownPrice: 'per_minute',
    // The length of the sound, in place of its file.
    quotedBy: ['seconds'],
    typicalUse: {
      words: 'a minute of sound transcribed (or 1,200 tokens of sound read and 250 written)',
      units: { per_minute: 1, audio: MINUTE.soundTokens, completion: MINUTE.textTokens },
    },
  },
  rerank: {
    outputs: ['rerank'],
    paths: ['/rerank'],
    summary: 'Sort documents by their relevance to a query',
    does: 'sorts documents',
    doesNot: 'sorts no documents',
    method: 'rerank',
    perCall: { unit: 'search unit', size: 'up to 100 documents' },
    quotedBy: ['query', 'documents'],
  },
  moderation: {
    outputs: ['moderation'],
    paths: ['/moderations'],
    summary: 'Judge content',
    does: 'judges content',
    doesNot: 'judges no content',
    method: 'moderations/create',
    perCall: { unit: 'call' },
    quotedBy: ['input'],
  },
} as const satisfies Readonly<Record<string, KindFacts>>;

export type ModelKind = keyof typeof MODEL_KINDS;

export const KINDS_OF_MODELS = Object.entries(MODEL_KINDS) as unknown as readonly (readonly [ModelKind, KindFacts])[];

/** Words for each kind that has a price per call: of its unit, its name and the size of the unit. */
export const chargedPerCall = (words: (unit: string, kind: ModelKind, size?: string) => string): readonly string[] =>
  KINDS_OF_MODELS.flatMap(([kind, { perCall }]) => (perCall ? [words(perCall.unit, kind, perCall.size)] : []));

/** The path of realtime sessions, at the gateway and at a provider. A WebSocket opens one, and no request. */
export const REALTIME_PATH = '/realtime';

/** Kinds of content that chat models take and make. */
export const CHAT_MODALITIES: readonly string[] = ['text', 'image', 'audio', 'video', 'file'];

interface Outputs {
  readonly outputModalities: readonly string[];
}

/** Whether a model is of a kind. It may be of several. */
export function isOfKind({ outputModalities }: Outputs, kind: ModelKind): boolean {
  for (const output of MODEL_KINDS[kind].outputs) if (outputModalities.includes(output)) return true;
  return false;
}

const KIND_OF_OUTPUT: ReadonlyMap<string, ModelKind> = new Map(
  KINDS_OF_MODELS.flatMap(([kind, { outputs }]) => outputs.map((output) => [output, kind] as const)),
);

/** The first kind that a model names; null for a model that names none, which chats. */
export function kindOf({ outputModalities }: Outputs): ModelKind | null {
  for (const output of outputModalities) {
    const kind = KIND_OF_OUTPUT.get(output);
    if (kind !== undefined) return kind;
  }
  return null;
}
