import type { JsonObject } from '#wire';
import type {
  Experimental_VideoModelV4CallOptions as VideoModelV4CallOptions,
  Experimental_VideoModelV4File as VideoModelV4File,
  JSONValue,
} from '@ai-sdk/provider';
import { RequestFault } from './fault.ts';
import { isRecord, listOf, numberOf, stringOf } from './json.ts';
import type { RequestFiles } from './load-file.ts';
import { fileAt } from './prompt.ts';

/** How a vendor is told the size of a video. */
interface Vendor {
  /** `landscape`: its package knows 1280x720 and the like, and takes the shape from the ratio. */
  readonly sizes?: 'landscape';
  /** Its package has no setting for the size, but passes this option on, with a name such as `720p`. */
  readonly tierOption?: string;
  /** Its models have options of their own, whose names are not those of JavaScript. */
  readonly plainNames?: true;
}

/** By the first part of the name that a model gives itself. Others take the size as it is. */
const VENDORS: Readonly<Record<string, Vendor>> = {
  google: { sizes: 'landscape' },
  xai: { sizes: 'landscape' },
  fal: { tierOption: 'resolution' },
  replicate: { plainNames: true },
};

const TIERS = [
  { name: '480p', size: '854x480', pixels: 854 * 480 },
  { name: '720p', size: '1280x720', pixels: 1280 * 720 },
  { name: '1080p', size: '1920x1080', pixels: 1920 * 1080 },
  { name: '4k', size: '3840x2160', pixels: 3840 * 2160 },
] as const;
const RATIOS = ['16:9', '9:16', '1:1', '4:3', '3:4', '3:2', '2:3', '21:9', '9:21'] as const;
/** Sizes are even numbers, so that their ratio is not exact. */
const NEARLY = 1.02;

/** Fields with a setting in the AI SDK, and some that no vendor needs. All others become options of the vendor. */
const MAPPED: ReadonlySet<string> = new Set(
  'model prompt seconds size resolution aspect_ratio generate_audio seed fps user input_reference end_image reference_images video_reference audio_reference'.split(
    ' ',
  ),
);

/**
 * A request for a video as the AI SDK takes it. Pictures that a request names by an address are loaded, because some
 * packages leave an address out with no more than a warning. Throws RequestFault.
 */
export async function toVideoOptions(
  body: JsonObject,
  provider: string,
  files: RequestFiles,
): Promise<VideoModelV4CallOptions> {
  const name = provider.split('.', 1)[0]!;
  const vendor = VENDORS[name] ?? {};
  const size = sizeOf(body['size']);
  const tier = tierOf(stringOf(body['resolution']), size);
  const [image, last] = await Promise.all([
    pictureOf(body['input_reference'], 'input_reference', files),
    pictureOf(body['end_image'], 'end_image', files),
  ]);
  const references = await Promise.all(
    listOf(body['reference_images']).map((one, index) => pictureOf(one, `reference_images[${index}]`, files)),
  );
  const others = [fileOf(body['video_reference'], 'video'), fileOf(body['audio_reference'], 'audio')];
  const all = [...references, ...others].filter((file) => file !== undefined);
  const own: Record<string, JSONValue> = {};
  if (vendor.tierOption !== undefined && tier !== undefined) own[vendor.tierOption] = tier.name;
  for (const [field, value] of Object.entries(body))
    if (!MAPPED.has(field) && value !== null) own[vendor.plainNames ? field : camelCase(field)] = value as JSONValue;
  const { generate_audio: audio, fps } = body;
  return {
    prompt: stringOf(body['prompt']),
    n: 1,
    duration: numberOf(body['seconds']) ?? (Number(stringOf(body['seconds'])) || undefined),
    resolution: vendor.sizes === 'landscape' ? tier?.size : size && `${size.width}x${size.height}`,
    aspectRatio: (stringOf(body['aspect_ratio']) as `${number}:${number}` | undefined) ?? ratioOf(size),
    fps: numberOf(fps),
    seed: numberOf(body['seed']),
    generateAudio: audio === undefined ? undefined : audio === true || audio === 'true',
    image,
    frameImages:
      last === undefined
        ? undefined
        : [...(image ? [{ image, frameType: 'first_frame' as const }] : []), { image: last, frameType: 'last_frame' }],
    inputReferences: all.length === 0 ? undefined : all,
    providerOptions: Object.keys(own).length === 0 ? {} : { [name]: own },
  };
}

interface Size {
  readonly width: number;
  readonly height: number;
}

function sizeOf(value: unknown): Size | undefined {
  const [, width, height] = /^(\d{1,5})x(\d{1,5})$/.exec(stringOf(value) ?? '') ?? [];
  return width === undefined ? undefined : { width: Number(width), height: Number(height) };
}

/** The resolution by its name, or the smallest one with as many pixels as the size. */
function tierOf(resolution: string | undefined, size: Size | undefined) {
  const tier = TIERS.find(({ name }) => name === resolution);
  if (tier !== undefined || size === undefined) return tier;
  return TIERS.find(({ pixels }) => size.width * size.height <= pixels * NEARLY) ?? TIERS.at(-1);
}

function ratioOf(size: Size | undefined): `${number}:${number}` | undefined {
  if (size === undefined) return undefined;
  const ratio = size.width / size.height;
  const near = RATIOS.find((one) => {
    const [across, down] = one.split(':').map(Number);
    const times = ratio / (across! / down!);
    return times < NEARLY && times > 1 / NEARLY;
  });
  return near ?? `${size.width}:${size.height}`;
}

async function pictureOf(value: unknown, at: string, files: RequestFiles): Promise<VideoModelV4File | undefined> {
  const file = fileOf(value, 'image', at);
  if (file?.type !== 'url') return file;
  const { data, mediaType } = await files.load(new URL(file.url));
  return { type: 'file', data, mediaType };
}

function fileOf(value: unknown, kind: 'image' | 'video' | 'audio', at: string = kind): VideoModelV4File | undefined {
  if (value === undefined || value === null) return undefined;
  const { mediaType, data } = fileAt(isRecord(value) ? value['image_url'] : value, TYPES[kind], at);
  if (data.type === 'data') return { type: 'file', mediaType, data: data.data };
  if (data.type === 'url') return { type: 'url', mediaType, url: data.url.href };
  throw new RequestFault(`${at} must be an address or a data URL`, { param: at });
}

const TYPES = { image: 'image/png', video: 'video/mp4', audio: 'audio/mpeg' } as const;

const camelCase = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
