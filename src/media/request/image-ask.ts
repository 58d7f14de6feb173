import { hash } from 'node:crypto';
import { GatewayError } from '#errors';
import { isObject } from '#wire';
import type { EditInputs } from './input-images.ts';
import { EDGE_MAX, EDGE_MIN, METADATA_BYTES_MAX, type ImageBody } from './image-fields.ts';
import type { ImageFormat } from '../image-file.ts';

export type EventPrefix = 'image_generation' | 'image_edit';

export interface ImageStream {
  /** Partial images, 0 to 3. null for several images, which no provider is asked to stream. */
  readonly partialImages: number | null;
  readonly eventPrefix: EventPrefix;
  /** The events are in the form of OpenRouter's API. A provider that streams no images is asked without a stream. */
  readonly inOpenrouter: boolean;
}

export interface ImageAsk {
  /** The images to edit; null if images are made of the prompt alone. */
  readonly edit: EditInputs | null;
  readonly prompt: string;
  readonly n: number;
  /** In pixels. null: the model's own size. */
  readonly size: { readonly width: number; readonly height: number } | null;
  readonly resolution: string | null;
  readonly aspectRatio: string | null;
  /** null if absent, and for `auto`. */
  readonly quality: string | null;
  readonly format: ImageFormat | null;
  /** null for an answer that is not streamed. */
  readonly stream: ImageStream | null;
  /** null for a new seed each time. */
  readonly seed: number | null;
  /** All other fields that ask for something, by the names of `/image/generate`. */
  readonly more: Readonly<Record<string, unknown>>;
}

/** Other names of fields. If a request has both names, both must have the same value. */
const ALIASES: Readonly<Record<string, string>> = {
  guidance_scale: 'guide_scale',
  cfg_scale: 'guide_scale',
  format: 'output_format',
  variants: 'n',
};

/** Names that some APIs have for the number of images. They are refused, because they would change what is paid for. */
const COUNT_NAMES: ReadonlySet<string> = new Set([
  'batch_size',
  'n_images',
  'num_images',
  'num_images_per_prompt',
  'num_outputs',
  'num_samples',
  'number_of_images',
  'number_results',
  'sample_count',
]);

/** Fields that are read here, or that the gateway acts on. No provider gets them unchanged. */
const READ: ReadonlySet<string> = new Set([
  'model',
  'prompt',
  'n',
  'width',
  'height',
  'size',
  'resolution',
  'aspect_ratio',
  'quality',
  'output_format',
  'output_type',
  'response_format',
  'seed',
  'stream',
  'partial_images',
  'metadata',
  'models',
  'provider',
  'session_id',
  'max_cost',
  'images',
  'mask',
  'image_count',
  'quote_id',
]);

const fault = (param: string, message: string) => new GatewayError('invalid_request', message, { param });

/**
 * Replaces other names of fields in a parsed body. Call it before the body is checked. Throws GatewayError
 * `invalid_request` for two names of one field with different values, and for another name of `n`.
 */
export function withOwnNames(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  const fields: Record<string, unknown> = { ...body };
  for (const [alias, name] of Object.entries(ALIASES)) {
    if (!Object.hasOwn(fields, alias)) continue;
    const value = fields[alias];
    delete fields[alias];
    if (value === null) continue;
    const own = fields[name] ?? null;
    if (own !== null && own !== value)
      throw fault(alias, `${alias} and ${name} have different values: send only ${name}`);
    fields[name] = value;
  }
  if (fields['return_binary'] === true && (fields['output_type'] ?? 'file') === 'file') fields['output_type'] = 'file';
  delete fields['return_binary'];
  if (Object.hasOwn(fields, 'image')) {
    const { image } = fields;
    delete fields['image'];
    if ((image ?? null) !== null) {
      if ((fields['images'] ?? null) !== null) throw fault('image', 'image and images mean the same: send only images');
      fields['images'] = Array.isArray(image) ? image : [image];
    }
  }
  for (const name of Object.keys(fields))
    if (COUNT_NAMES.has(name)) throw fault(name, `${name} is not supported: the number of images is n`);
  return fields;
}

/**
 * Changes an error about a field to the name that `body` has for it: `variants` instead of `n` if the client sent
 * `variants`.
 */
export function byNameIn(body: unknown, error: unknown): unknown {
  if (!(error instanceof GatewayError) || !isObject(body)) return error;
  const { code, message, param = '' } = error;
  const alias = Object.keys(ALIASES).find((name) => ALIASES[name] === param && (body[name] ?? null) !== null);
  if (alias === undefined || Object.hasOwn(body, param) || !message.startsWith(`${param} `)) return error;
  return new GatewayError(code, alias + message.slice(param.length), { param: alias });
}

/** Reads a checked body. Throws GatewayError `invalid_request` and `unprocessable`. */
export function toImageAsk(
  body: ImageBody,
  account: string,
  { edit, events }: { readonly edit: EditInputs | null; readonly events: EventForm },
): ImageAsk {
  refuseLongMetadata(body.metadata ?? null);
  const more: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(body))
    if (!READ.has(name) && value !== null && !saysNothing(name, value)) more[name] = value;
  // The user is personal data. The provider gets a digest, by which it can only tell users apart.
  if (typeof more['user'] === 'string') more['user'] = hash('sha256', JSON.stringify([account, more['user']]));
  const size = sizeOf(body);
  const resolution = text(body['resolution']);
  if (size !== null && resolution !== null && tierOfSize(size) !== resolution)
    throw fault(
      'resolution',
      `resolution ${resolution} does not match ${size.width}x${size.height}: send only one of them`,
    );
  const quality = text(body['quality']);
  const seed = body['seed'];
  return {
    edit,
    prompt: body.prompt ?? '',
    n: typeof body['n'] === 'number' ? body['n'] : 1,
    size,
    resolution,
    aspectRatio: aspectRatioOf(body),
    quality: quality === 'auto' ? null : quality,
    format: text(body['output_format']) as ImageFormat | null,
    stream: streamOf(body, events),
    seed: typeof seed === 'number' && seed >= 0 ? seed : null,
    more,
  };
}

/** The edge of the largest square in each tier that a size can belong to, in pixels. */
const TIERS = [
  ['1K', 1024],
  ['2K', 2048],
  ['4K', 4096],
] as const;

/** Edge of the square of a tier in pixels; null for a provider's own tier. */
export const edgeOfTier = (tier: string): number | null => {
  if (tier === '512') return 512;
  return TIERS.find(([name]) => name === tier)?.[1] ?? null;
};

/** The lowest tier whose square has at least as many pixels. */
export function tierOfSize({ width, height }: { readonly width: number; readonly height: number }): string {
  const pixels = width * height;
  return (TIERS.find(([, edge]) => pixels <= edge * edge) ?? TIERS[2])[0];
}

const STEP = 64;

/** The size of a tier in this ratio: at most as many pixels as the square has, in steps of 64. */
export function sizeIn(edge: number, ratio: string | null): { readonly width: number; readonly height: number } {
  const [across = 1, down = 1] = (ratio ?? '1:1').split(':').map(Number);
  const wide = Math.sqrt(across / down);
  const inSteps = (pixels: number) => Math.min(EDGE_MAX, Math.max(EDGE_MIN, Math.floor(pixels / STEP + 1e-9) * STEP));
  return { width: inSteps(edge * wide), height: inSteps(edge / wide) };
}

/** Fields that ask for nothing with these values. They are left out, so a provider need not take them. */
const NOTHING: Readonly<Record<string, readonly unknown[]>> = {
  background: ['auto'],
  embed_exif_metadata: [false],
  enable_web_search: [false],
  hide_watermark: [false],
  lora_strength: [0],
  moderation: ['auto'],
  negative_prompt: [''],
  prompt_extend: [false],
  safe_mode: [false],
  style: [''],
  style_preset: [''],
  user: [''],
  watermark: [false],
};

const saysNothing = (name: string, value: unknown): boolean =>
  Object.hasOwn(NOTHING, name) && NOTHING[name]!.includes(value);

const text = (value: unknown): string | null => (typeof value === 'string' ? value : null);

function sizeOf(body: ImageBody): ImageAsk['size'] {
  const written = text(body['size']);
  const inOne = written === null || written === 'auto' ? null : written.split('x').map(Number);
  const width = edgeOf(body, 'width');
  const height = edgeOf(body, 'height');
  if ((width === null) !== (height === null)) {
    const [there, missing] = width === null ? ['height', 'width'] : ['width', 'height'];
    throw fault(missing, `${missing} is missing: it goes together with ${there}`);
  }
  if (inOne === null) return width === null ? null : { width, height: height! };
  const [across = 0, down = 0] = inOne;
  if (width !== null && (width !== across || height !== down))
    throw fault('size', 'size differs from width and height: send only one of them');
  for (const edge of [across, down]) if (!isEdge(edge)) throw wrongEdge('size', edge);
  return { width: across, height: down };
}

const isEdge = (pixels: number) => pixels >= EDGE_MIN && pixels <= EDGE_MAX;
const wrongEdge = (param: string, pixels: number) =>
  fault(param, `${param} must be ${EDGE_MIN} to ${EDGE_MAX} pixels an edge, not ${pixels}`);

function edgeOf(body: ImageBody, name: 'width' | 'height'): number | null {
  const value = body[name] ?? null;
  if (value === null) return null;
  const pixels = Number(value);
  if (!isEdge(pixels)) throw wrongEdge(name, pixels);
  return pixels;
}

const RATIO_MAX = 8;

function aspectRatioOf(body: ImageBody): string | null {
  const ratio = text(body['aspect_ratio']);
  if (ratio === null) return null;
  const [across = 1, down = 1] = ratio.split(':').map(Number);
  if (across > down * RATIO_MAX || down > across * RATIO_MAX)
    throw fault('aspect_ratio', `aspect_ratio must be from 1:${RATIO_MAX} to ${RATIO_MAX}:1, not ${ratio}`);
  return ratio;
}

export interface EventForm {
  readonly prefix: EventPrefix;
  readonly partialImages: number;
  /** The form of OpenRouter's API. Default: that of OpenAI's. */
  readonly inOpenrouter?: true;
}

function streamOf({ stream, partial_images: partials, n, output_type: type }: ImageBody, events: EventForm) {
  if (stream !== true) {
    if (typeof partials === 'number' && partials > 0)
      throw fault('partial_images', 'partial_images needs stream: true');
    return null;
  }
  if (type === 'file')
    throw fault('output_type', 'output_type file cannot be streamed: send only one of output_type file and stream');
  // No API says to which of several images a partial one belongs. So several are asked for in one piece.
  const isOne = typeof n !== 'number' || n === 1;
  const partialImages = isOne ? (typeof partials === 'number' ? partials : events.partialImages) : null;
  return { partialImages, eventPrefix: events.prefix, inOpenrouter: events.inOpenrouter === true };
}

function refuseLongMetadata(metadata: ImageBody['metadata'] | null): void {
  if (metadata && Buffer.byteLength(JSON.stringify(metadata)) > METADATA_BYTES_MAX)
    throw fault('metadata', `metadata is longer than ${METADATA_BYTES_MAX} bytes as JSON`);
}
