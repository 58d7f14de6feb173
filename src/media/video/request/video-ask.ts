import { hash } from 'node:crypto';
import { GatewayError } from '#errors';
import { outboundUrlFault } from '#security';
import type { ProviderPreferences } from '#call';
import { METADATA_BYTES_MAX } from '../../request/image-fields.ts';
import type { BodyParts, FetchedInputs } from '../../request/input-images.ts';
import { type MediaInput, readInput, withFile } from './media-input.ts';
import { REFERENCES_MAX, REFERENCES_RIGHT } from './video-fields.ts';

export interface VideoBody {
  readonly model: string;
  readonly models?: readonly string[] | null;
  readonly provider?: ProviderPreferences | null;
  readonly session_id?: string | null;
  readonly max_cost?: number | string | null;
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  readonly [field: string]: unknown;
}

export interface VideoAsk {
  /** null if the request has only a picture. */
  readonly prompt: string | null;
  readonly n: number;
  /** null: the first length that the model lists. */
  readonly seconds: number | null;
  readonly resolution: string | null;
  readonly size: { readonly width: number; readonly height: number } | null;
  readonly aspectRatio: string | null;
  readonly audio: boolean;
  /** null for a new seed each time. */
  readonly seed: number | null;
  /** By the names of `/video/queue`. */
  readonly inputs: Readonly<Partial<Record<InputName, MediaInput>>>;
  readonly references: readonly MediaInput[];
  /** All other fields that ask for something, by the names of `/video/queue`. */
  readonly more: Readonly<Record<string, unknown>>;
  readonly callbackUrl: string | null;
  /** The client's names of fields, by the names of `/video/queue`, for errors. The other fields have the same name. */
  readonly names: FieldNames;
}

const INPUTS = {
  image_url: 'image',
  end_image_url: 'image',
  video_url: 'video',
  audio_url: 'audio',
} as const;
type InputName = keyof typeof INPUTS;

export const VIDEO_INPUTS: readonly string[] = [
  ...Object.keys(INPUTS),
  'reference_image_urls',
  'input_reference',
  'end_image',
  'reference_images',
  'video_reference',
  'audio_reference',
  'frame_images',
  'input_references',
];

const READ: ReadonlySet<string> = new Set([
  ...Object.keys(INPUTS),
  'aspect_ratio',
  'callback_url',
  'duration',
  'generate_audio',
  'max_cost',
  'metadata',
  'model',
  'models',
  'n',
  'prompt',
  'provider',
  'quote_id',
  'reference_image_urls',
  'resolution',
  'seed',
  'session_id',
  'size',
]);

const NOTHING: Readonly<Record<string, readonly unknown[]>> = {
  audio_prompt: [''],
  camera_fixed: [false],
  negative_prompt: [''],
  user: [''],
  watermark: [false],
};

export const WIRE_NAMES: Readonly<Record<string, string>> = {
  frame_rate: 'fps',
  image_url: 'input_reference',
  end_image_url: 'end_image',
  reference_image_urls: 'reference_images',
  video_url: 'video_reference',
  audio_url: 'audio_reference',
};

/**
 * Other names of fields. A client may use the names of the APIs, so their values get the same checks. If a request has
 * both names, both must have the same value.
 */
const ALIASES: Readonly<Record<string, string>> = {
  seconds: 'duration',
  variants: 'n',
  ...Object.fromEntries(Object.entries(WIRE_NAMES).map(([name, inApi]) => [inApi, name])),
};

/** Names that some APIs have for the number of videos. They are refused, because they would change what is paid for. */
const COUNT_NAMES: ReadonlySet<string> = new Set([
  'batch_size',
  'num_outputs',
  'num_videos',
  'num_videos_per_prompt',
  'number_results',
  'sample_count',
]);

const fault = (param: string, message: string) => new GatewayError('invalid_request', message, { param });

/**
 * Replaces other names of fields in a parsed body, except those in `keeps`. Call it before the body is checked.
 * Throws GatewayError `invalid_request` for two names of one field with different values, and for another name of
 * `n`.
 */
export function withOwnVideoNames(body: unknown, keeps: ReadonlySet<string>): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  const fields: Record<string, unknown> = { ...body };
  for (const [alias, name] of Object.entries(ALIASES)) {
    if (!Object.hasOwn(fields, alias) || keeps.has(alias)) continue;
    const value = fields[alias];
    delete fields[alias];
    if (value === null) continue;
    const own = fields[name] ?? null;
    if (own !== null && own !== value)
      throw fault(alias, `${alias} and ${name} have different values: send only ${name}`);
    fields[name] = value;
  }
  if (fields['resolution'] === '4K') fields['resolution'] = '4k';
  for (const name of Object.keys(fields))
    if (COUNT_NAMES.has(name)) throw fault(name, `${name} is not supported: the number of videos is n`);
  return fields;
}

interface VideoAskOptions {
  /** It needs no prompt; default false. */
  readonly quotes?: boolean;
  /** The long texts and files of the body; default none. */
  readonly parts?: BodyParts;
  /** The names and places of fields in the client's own body, see VideoAsk; default those of `/video/queue`. */
  readonly names?: FieldNames;
}

export type FieldNames = Readonly<Record<string, string>>;

/** Names of fields at a route that has the fields `known`, unless the client sent those of `/video/queue`. */
export function clientNames(body: VideoBody, known: ReadonlySet<string>): FieldNames {
  const names: Record<string, string> = {};
  const sent = (name: string) => (body[name] ?? null) !== null;
  for (const [alias, name] of Object.entries(ALIASES)) if (known.has(alias) && !sent(name)) names[name] = alias;
  return names;
}

const WITHOUT_PARTS: BodyParts = { bytesOf: (text) => Buffer.from(text, 'utf8'), fileOf: () => null };

/** Reads a checked body. Rejects with GatewayError `invalid_request`. */
export async function toVideoAsk(
  body: VideoBody,
  account: string,
  allowPrivate: boolean,
  { quotes = false, parts = WITHOUT_PARTS, names = {} }: VideoAskOptions = {},
): Promise<VideoAsk> {
  refuseLongMetadata(body.metadata ?? null);
  const inputs: Partial<Record<InputName, MediaInput>> = {};
  for (const [name, kind] of Object.entries(INPUTS)) {
    const input = await readInput(body[name], names[name] ?? name, kind, parts, allowPrivate);
    if (input !== null) inputs[name as InputName] = input;
  }
  const references = await readReferences(
    body['reference_image_urls'] ?? [],
    (at) => names[`reference_image_urls[${at}]`] ?? `reference_image_urls[${at}]`,
    parts,
    allowPrivate,
  );
  const prompt = text(body['prompt']);
  if (!quotes && (prompt === null || prompt === '') && inputs.image_url === undefined)
    throw fault('prompt', `prompt is missing. It may be omitted only if ${names['image_url'] ?? 'image_url'} is given`);
  const more: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(body))
    if (!READ.has(name) && value !== null && !(Object.hasOwn(NOTHING, name) && NOTHING[name]!.includes(value)))
      more[name] = value;
  // The user is personal data. The provider gets a digest, by which it can only tell users apart.
  if (typeof more['user'] === 'string') more['user'] = hash('sha256', JSON.stringify([account, more['user']]));
  const seed = body['seed'];
  return {
    prompt: prompt === '' ? null : prompt,
    n: typeof body['n'] === 'number' ? body['n'] : 1,
    seconds: secondsOf(body['duration']),
    ...sizeOf(body),
    aspectRatio: text(body['aspect_ratio']),
    audio: body['generate_audio'] === true,
    seed: typeof seed === 'number' && seed >= 0 ? seed : null,
    inputs,
    references,
    more,
    callbackUrl: callbackOf(body, allowPrivate),
    names,
  };
}

async function readReferences(
  listed: unknown,
  placeOf: (at: number) => string,
  parts: BodyParts,
  allowPrivate: boolean,
): Promise<readonly MediaInput[]> {
  // The schema of a route that does not have this field leaves it unchecked.
  if (!Array.isArray(listed) || listed.length > REFERENCES_MAX)
    throw fault('reference_image_urls', `reference_image_urls must be ${REFERENCES_RIGHT}`);
  const references: MediaInput[] = [];
  for (const [at, one] of listed.entries()) {
    const input = await readInput(one, placeOf(at), 'image', parts, allowPrivate);
    if (input !== null) references.push(input);
  }
  return references;
}

/** The request with the bytes of all its inputs. Rejects with GatewayError, see FetchedInputs. */
export async function withFiles(ask: VideoAsk, fetched: FetchedInputs): Promise<VideoAsk> {
  const entries = Object.entries(ask.inputs).map(
    async ([name, input]) => [name, await withFile(input, fetched)] as const,
  );
  const references = ask.references.map((input) => withFile(input, fetched));
  return { ...ask, inputs: Object.fromEntries(await Promise.all(entries)), references: await Promise.all(references) };
}

function callbackOf(body: VideoBody, allowPrivate: boolean): string | null {
  const url = text(body['callback_url']);
  const wrong = url === null ? null : outboundUrlFault(url, { allowPrivate });
  if (wrong !== null) throw fault('callback_url', `callback_url ${wrong}`);
  return url;
}

const text = (value: unknown): string | null => (typeof value === 'string' ? value : null);

/** `5s`, `"5"` and `5` are the same. */
function secondsOf(duration: unknown): number | null {
  if (typeof duration === 'number') return duration;
  return typeof duration === 'string' ? Number(duration.replace(/s$/, '')) : null;
}

const EDGE_MAX = 4096;
/** Pixels of the largest picture of each resolution. */
const PIXELS = { '480p': 854 * 480, '720p': 1280 * 720, '1080p': 1920 * 1080, '4k': 4096 * 2160 } as const;

function sizeOf(body: VideoBody): Pick<VideoAsk, 'size' | 'resolution'> {
  const resolution = text(body['resolution']);
  const written = text(body['size']);
  if (written === null) return { size: null, resolution };
  const [width = 0, height = 0] = written.split('x').map(Number);
  const name = Object.entries(PIXELS).find(([, pixels]) => width * height <= pixels)?.[0];
  if (name === undefined || Math.max(width, height) > EDGE_MAX)
    throw fault('size', `size ${written} is larger than 4k`);
  if (resolution !== null && resolution !== name)
    throw fault('resolution', `resolution ${resolution} does not match ${written}: send only one of them`);
  return { size: { width, height }, resolution: name };
}

/**
 * The size of a resolution in this ratio. The number of the resolution is the shorter edge. The size has no more
 * pixels than in 16:9.
 */
export function sizeIn(resolution: string, ratio: string | null): { readonly width: number; readonly height: number } {
  const [across = 16, down = 9] = (ratio ?? '16:9').split(':').map(Number);
  const edge = resolution === '4k' ? 2160 : Number.parseInt(resolution, 10);
  const long = Math.max(across, down) / Math.min(across, down);
  const short = long > 16 / 9 ? edge * Math.sqrt(16 / 9 / long) : edge;
  const even = (pixels: number) => Math.round(pixels / 2) * 2;
  const [wide, narrow] = [even(short * long), even(short)];
  return across >= down ? { width: wide, height: narrow } : { width: narrow, height: wide };
}

function refuseLongMetadata(metadata: VideoBody['metadata'] | null): void {
  if (metadata && Buffer.byteLength(JSON.stringify(metadata)) > METADATA_BYTES_MAX)
    throw fault('metadata', `metadata is longer than ${METADATA_BYTES_MAX} bytes as JSON`);
}
