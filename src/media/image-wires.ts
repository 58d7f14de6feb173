import type { RefusedFields } from '#call/refused-fields';
import type { Offer } from '#catalog';
import { FormBody, PiecedBody } from '#http';
import { IMAGE_PATHS } from '#config';
import { type ImageAsk, edgeOfTier, sizeIn } from './request/image-ask.ts';
import { pricedQualities, tierAt } from './image-price.ts';
import { unprocessable } from './media-error.ts';
import type { EditInputs, InputImage } from './request/input-images.ts';

/** An API for images, as the gateway calls it. Its replies have the form of OpenAI's API: see createImageReader. */
interface ImageWire {
  /**
   * The fields of a request, without its images. Throws GatewayError `unprocessable` that names the first field that
   * the offer does not take. `refused`: which of `ADDED` are left out.
   */
  fields(ask: ImageAsk, offer: Offer, refused: RefusedFields): Readonly<Record<string, unknown>>;
  /** The request. The images of `ask` must be loaded before. */
  request(ask: ImageAsk, offer: Offer, refused: RefusedFields): WireRequest;
}

interface WireRequest {
  /** Path below the base URL of the offer. */
  readonly path: string;
  readonly contentType: string;
  readonly body: PiecedBody | string;
}

const OPENAI_PATHS = IMAGE_PATHS.openai;
/** Our names of fields, with the names that APIs compatible with OpenAI's have for them. */
const WIRE_NAMES: Readonly<Record<string, string>> = { guide_scale: 'guidance_scale', steps: 'num_inference_steps' };

/** Fields that an offer takes if it lists no fields at all, because most APIs of this kind take them. */
const USUAL: ReadonlySet<string> = new Set([
  'background',
  'guide_scale',
  'moderation',
  'negative_prompt',
  'output_compression',
  'steps',
  'style',
]);

/** Asks for base64. Some models always answer so, and refuse the field. */
const BASE64_FIELD = 'response_format';
/** Fields that the gateway itself adds to requests. */
export const ADDED: readonly string[] = [BASE64_FIELD, 'n'];

/** Models that always answer base64 and refuse the field that asks for it. */
const ALWAYS_BASE64 = /^(?:chatgpt-image|gpt-image)/;

/** OpenAI's API, as SGLang, vLLM-Omni and others serve it. */
const openaiImages: ImageWire = {
  fields: openaiFields,
  request(ask, offer, refused) {
    const fields = openaiFields(ask, offer, refused);
    const { edit } = ask;
    if (edit === null)
      return { path: OPENAI_PATHS.make, contentType: 'application/json', body: JSON.stringify(fields) };
    const inJson = offer.media!.imageApi?.body === 'json';
    return { path: OPENAI_PATHS.edit, ...(inJson ? jsonBody(fields, edit, OPENAI_JSON) : formBody(fields, edit)) };
  },
};

const OPENAI_JSON = { list: 'images', mask: 'mask', before: '{"image_url":"', after: '"}' };

/** The fields of a request. Other wires start from them. */
function openaiFields(ask: ImageAsk, offer: Offer, refused: RefusedFields): Record<string, unknown> {
  const facts = offer.media!;
  const takes = takenBy(offer);
  if (ask.edit !== null && !facts.imageApi?.edits)
    throw unprocessable('images', `${offer.service} of ${offer.provider.name} edits no images`);
  const body: Record<string, unknown> = { model: facts.upstreamModel, prompt: ask.prompt };
  if (ask.n > 1 || !refused.has(offer, 'n')) body['n'] = ask.n;
  Object.assign(body, sizeFields(ask, offer, takes));
  if (ask.quality !== null) {
    refuseUnpriced(ask.quality, ask, offer, takes);
    body['quality'] = ask.quality;
  }
  if (ask.format !== null) Object.assign(body, formatField(ask.format, offer, takes));
  if (typeof ask.stream?.partialImages === 'number') {
    // A vendor bills partial images, and no price counts them: only an offer that lists them is asked for some.
    const partialImages = takes.lists('partial_images') ? ask.stream.partialImages : 0;
    if (takes.lists('stream')) Object.assign(body, { stream: true, partial_images: partialImages });
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
  const { wire = 'openai' } = facts.imageApi ?? {};
  if (wire === 'openai' && !ALWAYS_BASE64.test(facts.upstreamModel) && !refused.has(offer, BASE64_FIELD))
    body[BASE64_FIELD] = 'b64_json';
  return body;
}

/**
 * Throws GatewayError `unprocessable` for a quality at an offer that has no prices of qualities, and does not list the
 * field: a high one costs several times as much (decision 157). `standard` is what such an API makes anyway.
 */
function refuseUnpriced(quality: string, ask: ImageAsk, offer: Offer, takes: Takes): void {
  if (quality === 'standard' || takes.lists('quality') || pricedQualities(ask, offer).length > 0) return;
  throw unprocessable(
    'quality',
    `quality ${quality} has no price at ${offer.provider.name}: leave it out. The operator can set prices of qualities, or list quality in supported_params`,
  );
}

interface Takes {
  readonly lists: (name: string) => boolean;
  /** Throws GatewayError `unprocessable` if the offer does not take the field. */
  readonly must: (name: string) => void;
}

const ALWAYS_TRIED: ReadonlySet<string> = new Set([...USUAL, 'seed']);

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

const OPENROUTER_PATHS = IMAGE_PATHS.openrouter;

/** OpenRouter's API. It has one path, and a request with images is an edit. It has no masks. */
const openrouterImages: ImageWire = {
  fields(ask, offer, refused) {
    if (ask.edit?.hasMask)
      throw unprocessable('mask', `mask is not taken by ${offer.service} of ${offer.provider.name}`);
    if (Object.hasOwn(ask.more, OPENROUTER_JSON.list))
      throw unprocessable(
        OPENROUTER_JSON.list,
        `${OPENROUTER_JSON.list} is the provider's own name of images. Send images to /image/edit`,
      );
    return openaiFields(ask, offer, refused);
  },
  request(ask, offer, refused) {
    const fields = this.fields(ask, offer, refused);
    const editBody =
      ask.edit === null
        ? { contentType: 'application/json', body: JSON.stringify(fields) }
        : jsonBody(fields, ask.edit, OPENROUTER_JSON);
    return { path: ask.edit === null ? OPENROUTER_PATHS.make : OPENROUTER_PATHS.edit, ...editBody };
  },
};

const OPENROUTER_JSON = {
  list: 'input_references',
  mask: 'mask',
  before: '{"type":"image_url","image_url":{"url":"',
  after: '"}}',
};

const TOLLGATE_PATHS = IMAGE_PATHS.tollgate;

/** The API of another tollgate gateway. Its fields are the same as ours. */
const tollgateImages: ImageWire = {
  fields(ask, offer, refused) {
    const { num_inference_steps: steps, ...fields } = openaiFields(ask, offer, refused);
    return steps === undefined ? fields : { ...fields, steps };
  },
  request(ask, offer, refused) {
    const fields = this.fields(ask, offer, refused);
    return ask.edit === null
      ? { path: TOLLGATE_PATHS.make, contentType: 'application/json', body: JSON.stringify(fields) }
      : { path: TOLLGATE_PATHS.edit, ...jsonBody(fields, ask.edit, TOLLGATE_JSON) };
  },
};

const TOLLGATE_JSON = { list: 'images', mask: 'mask', before: '{"b64":"', after: '"}' };

interface EditBody {
  readonly contentType: string;
  readonly body: PiecedBody;
}

/** A form for OpenAI's API: one `image`, or several `image[]`, and a `mask`. */
function formBody(fields: Readonly<Record<string, unknown>>, { images, mask }: EditInputs): EditBody {
  const form = new FormBody();
  for (const [name, value] of Object.entries(fields)) form.field(name, value);
  const file = (name: string, fileName: string, { format, content }: InputImage) =>
    form.file(name, `${fileName}.${format}`, `image/${format}`, content.file);
  images.forEach((image, index) => file(images.length === 1 ? 'image' : 'image[]', `image_${index}`, image));
  if (mask !== null) file('mask', 'mask', mask);
  return { contentType: form.contentType, body: form.end() };
}

/** How a wire writes images into JSON: the text before and after the base64 of each. */
interface JsonForm {
  readonly list: string;
  readonly mask: string;
  readonly before: string;
  readonly after: string;
}

/** A JSON object with the images as data URLs. The base64 is neither copied nor parsed. */
function jsonBody(fields: Readonly<Record<string, unknown>>, { images, mask }: EditInputs, form: JsonForm): EditBody {
  const body = new PiecedBody();
  let text = JSON.stringify(fields).slice(0, -1);
  const put = ({ format, content }: InputImage) => {
    body.add(Buffer.from(`${text}${form.before}data:image/${format};base64,`)).add(content.base64);
    text = form.after;
  };
  text += `,${JSON.stringify(form.list)}:[`;
  images.forEach((image, index) => {
    if (index > 0) text += ',';
    put(image);
  });
  text += ']';
  if (mask !== null) {
    text += `,${JSON.stringify(form.mask)}:`;
    put(mask);
  }
  body.add(Buffer.from(`${text}}`));
  return { contentType: 'application/json', body };
}

const WIRES = { openai: openaiImages, tollgate: tollgateImages, openrouter: openrouterImages };

export const wireOf = ({ media }: Offer): ImageWire => WIRES[media!.imageApi?.wire ?? 'openai'];
