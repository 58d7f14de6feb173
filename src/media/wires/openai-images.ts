import { IMAGE_PATHS } from '#config';
import type { Offer } from '#gateway';
import { pricedQualities, tierAt, unprocessable } from '../image-price.ts';
import { edgeOfTier, type ImageAsk, sizeIn } from '../request/image-ask.ts';
import { formBody, jsonBody } from './edit-body.ts';
import type { ImageWire } from './image-wire.ts';

const PATHS = IMAGE_PATHS.openai;
/** Our names of fields, with the names that APIs compatible with OpenAI's have for them. */
const WIRE_NAMES: Readonly<Record<string, string>> = { guide_scale: 'guidance_scale', steps: 'num_inference_steps' };

/** Fields that an offer takes if it lists no fields at all, because most APIs of this kind take them. */
const USUAL: ReadonlySet<string> = new Set([
  'background',
  'guide_scale',
  'input_fidelity',
  'moderation',
  'negative_prompt',
  'output_compression',
  'steps',
  'style',
]);

/** Models that always answer base64 and refuse the field that asks for it. */
const ALWAYS_BASE64 = /^(?:chatgpt-image|gpt-image)/;

/** OpenAI's API, as SGLang, vLLM-Omni and others serve it. */
export const openaiImages: ImageWire = {
  fields: openaiFields,
  request(ask, offer, asksForBase64) {
    const fields = openaiFields(ask, offer, asksForBase64);
    const { edit } = ask;
    if (edit === null) return { path: PATHS.make, contentType: 'application/json', body: JSON.stringify(fields) };
    const inJson = offer.media!.imageApi?.body === 'json';
    return { path: PATHS.edit, ...(inJson ? jsonBody(fields, edit, IN_JSON) : formBody(fields, edit)) };
  },
};

const IN_JSON = { list: 'images', mask: 'mask', before: '{"image_url":"', after: '"}' };

/** The fields of a request. Other wires start from them. */
export function openaiFields(ask: ImageAsk, offer: Offer, asksForBase64: boolean): Record<string, unknown> {
  const facts = offer.media!;
  const takes = takenBy(offer);
  if (ask.edit !== null && !facts.imageApi?.edits)
    throw unprocessable('images', `${offer.service} of ${offer.provider.name} edits no images`);
  const body: Record<string, unknown> = { model: facts.upstreamModel, prompt: ask.prompt, n: ask.n };
  Object.assign(body, sizeFields(ask, offer, takes));
  if (ask.quality !== null) {
    if (pricedQualities(ask, offer).length === 0) takes.must('quality');
    body['quality'] = ask.quality;
  }
  if (ask.format !== null) Object.assign(body, formatField(ask.format, offer, takes));
  if (typeof ask.stream?.partialImages === 'number') {
    if (takes.lists('stream')) Object.assign(body, { stream: true, partial_images: ask.stream.partialImages });
    else if (!ask.stream.inOpenrouter)
      throw unprocessable('stream', `${offer.service} of ${offer.provider.name} streams no images`);
  }
  if (ask.seed !== null) {
    takes.must('seed');
    body['seed'] = ask.seed;
  }
  for (const [name, value] of Object.entries(ask.more)) {
    if (name !== 'user') takes.must(name);
    body[WIRE_NAMES[name] ?? name] = value;
  }
  if (asksForBase64 && !ALWAYS_BASE64.test(facts.upstreamModel)) body['response_format'] = 'b64_json';
  return body;
}

interface Takes {
  readonly lists: (name: string) => boolean;
  /** Throws GatewayError `unprocessable` if the offer does not take the field. */
  readonly must: (name: string) => void;
}

const ALWAYS_TRIED: ReadonlySet<string> = new Set([...USUAL, 'quality', 'seed']);

function takenBy({ media, provider, service }: Offer): Takes {
  const listed = media!.supportedParams;
  const lists = (name: string) => listed.includes(name) || listed.includes(WIRE_NAMES[name] ?? name);
  return {
    lists,
    must(name) {
      if (lists(name) || (listed.length === 0 && ALWAYS_TRIED.has(name))) return;
      const known = listed.length === 0 ? '' : `; it takes ${listed.join(', ')}`;
      throw unprocessable(name, `${name} is not taken by ${service} of ${provider.name}${known}`);
    },
  };
}

/** An offer that takes ratios or tiers gets them in addition to the size. */
function sizeFields(ask: ImageAsk, offer: Offer, { lists }: Takes): Record<string, unknown> {
  const { aspectRatio, size } = ask;
  const { aspectRatios } = offer.media!;
  const fields: Record<string, unknown> = {};
  if (aspectRatio !== null) {
    if (aspectRatios.length > 0 && !aspectRatios.includes(aspectRatio))
      throw unprocessable(
        'aspect_ratio',
        `aspect_ratio ${aspectRatio} is not made by ${offer.provider.name}; it makes ${aspectRatios.join(', ')}`,
      );
    if (lists('aspect_ratio')) fields['aspect_ratio'] = aspectRatio;
  }
  const tier = tierAt(ask, offer);
  const edge = tier === null ? null : edgeOfTier(tier);
  // A provider's own tier has no size that the gateway knows, so it is sent by its name.
  if (tier !== null && (edge === null || lists('resolution'))) fields['resolution'] = tier;
  if (size !== null) fields['size'] = `${size.width}x${size.height}`;
  else if (edge !== null || (tier === null && aspectRatio !== null)) {
    // By default, an edit keeps the aspect ratio of its base image.
    const { width, height } = sizeIn(edge ?? 1024, aspectRatio ?? ask.edit?.ratio ?? null);
    fields['size'] = `${width}x${height}`;
  }
  return fields;
}

function formatField(format: string, { media, provider }: Offer, takes: Takes): Record<string, unknown> {
  const { formats, supportedParams } = media!;
  if (formats.length > 0 && !formats.includes(format))
    throw unprocessable(
      'output_format',
      `output_format ${format} is not made by ${provider.name}; it makes ${formats.join(', ')}`,
    );
  if (formats.length > 0 || supportedParams.length === 0 || takes.lists('output_format'))
    return { output_format: format };
  // Most providers make PNG by default.
  if (format === 'png') return {};
  throw unprocessable('output_format', `output_format is not taken by ${provider.name}`);
}
