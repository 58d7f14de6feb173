import type { JsonObject } from '#wire';
import type { ImageModelV4, ImageModelV4CallOptions, ImageModelV4File, ImageModelV4Result } from '@ai-sdk/provider';
import { type Loaded, sendJson, type WorkerCall } from './worker-call.ts';
import { RequestFault } from './fault.ts';
import { isRecord, listOf, numberOf, stringOf } from './json.ts';
import { type Options, optionsOf } from './provider-options.ts';
import { base64Of } from './members.ts';
import { fileAt } from './prompt.ts';

const COUNT_MAX = 128;

export async function answerImages({ provider }: Loaded, { body, stream, signal }: WorkerCall): Promise<void> {
  const modelId = stringOf(body['model']) ?? '';
  const model = provider.imageModel(modelId);
  const count = numberOf(body['n']) ?? 1;
  if (!Number.isInteger(count) || count < 1 || count > COUNT_MAX)
    throw new RequestFault(`n must be a whole number from 1 to ${COUNT_MAX}`, { param: 'n' });
  const options = { ...toImageOptions(body, model.provider), abortSignal: signal };
  const results = await make(model, count, options);
  const images = results.flatMap(({ images: files }) => files as readonly (string | Uint8Array)[]);
  const warnings = results.flatMap((result) => result.warnings);
  const counted = results.map(({ usage }) => usage?.inputTokens);
  const input = counted.every((tokens) => tokens !== undefined) ? counted.reduce((sum, one) => sum + one, 0) : null;
  if (stream.destroyed) return;
  sendJson(stream, {
    created: Math.floor(Date.now() / 1000),
    data: images.map((image) => ({ b64_json: base64Of(image) })),
    ...(input === null ? {} : { usage: { input_tokens: input } }),
    ...(warnings.length === 0 ? {} : { warnings }),
  });
}

/** The calls run together, because a client waits for all of them. A failure of one is a failure of all. */
async function make(
  model: ImageModelV4,
  count: number,
  options: Omit<ImageModelV4CallOptions, 'n'>,
): Promise<readonly ImageModelV4Result[]> {
  const { maxImagesPerCall: limit, modelId } = model;
  const most = (typeof limit === 'function' ? await limit({ modelId }) : limit) ?? 1;
  const shares = Array.from({ length: Math.ceil(count / most) }, (_, index) => Math.min(most, count - index * most));
  return Promise.all(shares.map((n) => model.doGenerate({ ...options, n })));
}

const MAPPED: ReadonlySet<string> = new Set(
  'model prompt n size aspect_ratio seed images mask response_format user provider_options stream'.split(' '),
);

/** Fields that the AI SDK has no setting for, such as `quality`, are options of the provider under their own names. */
function toImageOptions(body: JsonObject, provider: string): Omit<ImageModelV4CallOptions, 'n'> {
  const own = Object.fromEntries(Object.entries(body).filter(([field, value]) => !MAPPED.has(field) && value !== null));
  const name = provider.split('.', 1)[0]!;
  const settings: Options = optionsOf(body['provider_options'], 'provider_options') ?? {};
  const files = listOf(body['images']).map((image, index) => fileOf(image, `images[${index}]`));
  const mask = body['mask'];
  return {
    prompt: stringOf(body['prompt']),
    size: matching<`${number}x${number}`>(body['size'], /^\d{1,5}x\d{1,5}$/),
    aspectRatio: matching<`${number}:${number}`>(body['aspect_ratio'], /^\d{1,4}:\d{1,4}$/),
    seed: numberOf(body['seed']),
    files: files.length === 0 ? undefined : files,
    mask: mask === undefined || mask === null ? undefined : fileOf(mask, 'mask'),
    providerOptions:
      Object.keys(own).length === 0
        ? settings
        : { ...settings, [name]: { ...(own as Options[string]), ...settings[name] } },
  };
}

const matching = <T extends string>(value: unknown, pattern: RegExp): T | undefined =>
  typeof value === 'string' && pattern.test(value) ? (value as T) : undefined;

/** The gateway sends the images themselves, as data URLs. */
function fileOf(image: unknown, at: string): ImageModelV4File {
  const { mediaType, data } = fileAt(isRecord(image) ? image['image_url'] : image, 'image/png', at);
  if (data.type !== 'data') throw new RequestFault(`${at} must be a data URL`, { param: at });
  return { type: 'file', mediaType, data: data.data };
}
