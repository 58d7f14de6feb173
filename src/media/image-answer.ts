import { isObject } from '#wire';
import { type Settlement, formatUsd, toUsdNumber } from '#billing/amounts';
import { fileBytes, type FoundImage, type ImageHead } from './image-file.ts';
import type { ImagesResult } from './reply/image-reader.ts';

interface AnswerAbout {
  readonly id: string;
  readonly model: string;
  /** Epoch seconds. */
  readonly created: number;
  readonly seed: number | null;
  readonly provider: string;
  /** The images that were edited; null for a generation. */
  readonly inputs: readonly ImageHead[] | null;
}

/** An answer that is written piece by piece. The images in it are the provider's own bytes. */
interface ImageAnswer {
  readonly headers: Readonly<Record<string, string | number>>;
  /** In bytes. */
  readonly length: number;
  pieces(): Iterable<Uint8Array>;
}

export type ImageAnswerForm = (result: ImagesResult, settlement: Settlement, about: AnswerAbout) => ImageAnswer;

const JSON_TYPE = 'application/json; charset=utf-8';

/** The answer of `/image/generate`. */
export const dataUrlAnswer: ImageAnswerForm = (result, settlement, { id, model, created, seed, provider, inputs }) => {
  const { images, raw } = result;
  const { usage: counts, ...rest } = raw;
  return jsonAnswer(
    { id, created, model, status: 'completed' },
    'images',
    images.map((image, index) => ({
      image,
      before: { index },
      name: 'data_url',
      prefix: dataUrlPrefix(image),
      after: {
        width: image.width,
        height: image.height,
        format: image.format,
        seed: image.seed ?? seed,
        ...(image.revisedPrompt === null ? {} : { revised_prompt: image.revisedPrompt }),
      },
    })),
    {
      ...(inputs === null ? {} : { input_images: inputs.map(({ width, height }) => ({ width, height })) }),
      provider_metadata: { provider, raw: { ...rest, ...(counts === undefined ? {} : { usage: counts }) } },
      usage: billedUsage(result, settlement),
    },
  );
};

/** The answer of `/images/generations`: base64, or data URLs. */
export const openaiAnswer =
  (as: 'b64_json' | 'url'): ImageAnswerForm =>
  (result, settlement, { created }) => {
    const { images, raw } = result;
    const { created: _theirs, usage: _counts, output_format: _named, ...rest } = raw;
    return jsonAnswer(
      { created },
      'data',
      images.map((image) => ({
        image,
        before: {},
        name: as,
        prefix: as === 'url' ? dataUrlPrefix(image) : '',
        after: image.revisedPrompt === null ? {} : { revised_prompt: image.revisedPrompt },
      })),
      {
        ...rest,
        output_format: images[0]!.format,
        usage: openaiUsage(result, settlement),
      },
    );
  };

/** The answer of `/images`, in the form of OpenRouter's API. */
export const openrouterAnswer: ImageAnswerForm = (result, settlement, { created }) =>
  jsonAnswer(
    { created },
    'data',
    result.images.map((image) => ({
      image,
      before: {},
      name: 'b64_json',
      prefix: '',
      after: { media_type: `image/${image.format}` },
    })),
    { usage: openrouterUsage(result, settlement) },
  );

/**
 * An answer that is the bytes of one file. Its headers make browsers show it as an image and run nothing, because a
 * file may begin as an image and contain a page further on.
 */
export const fileAnswer: ImageAnswerForm = ({ images }) => {
  const image = images[0]!;
  const { format, base64 } = image;
  return {
    headers: {
      'content-type': `image/${format}`,
      'content-disposition': `inline; filename="image_0.${format === 'jpeg' ? 'jpg' : format}"`,
      'content-security-policy': "default-src 'none'; sandbox",
      'cross-origin-resource-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
      'x-task-status': 'completed',
    },
    length: fileBytes(image),
    pieces: () => decoded(base64),
  };
};

function* decoded(base64: Buffer): Generator<Uint8Array> {
  for (let at = 0; at < base64.byteLength; at += DECODED_CHARS)
    yield Buffer.from(base64.toString('latin1', at, at + DECODED_CHARS), 'base64');
}

/** Characters that are decoded at once; a multiple of 4. */
const DECODED_CHARS = 1024 * 1024;

const dataUrlPrefix = ({ format }: FoundImage) => `data:image/${format};base64,`;

interface Item {
  readonly image: FoundImage;
  readonly before: object;
  readonly name: string;
  readonly prefix: string;
  readonly after: object;
}

/** `{…head, "<list>": [{…before, "<name>": "<prefix><base64>", …after}], …rest}` */
function jsonAnswer(head: object, list: string, items: readonly Item[], rest: object): ImageAnswer {
  const pieces: Uint8Array[] = [];
  let text = `${openingOf(head)}"${list}":[`;
  items.forEach(({ image, before, name, prefix, after }, index) => {
    text += `${index === 0 ? '' : ','}${openingOf(before)}"${name}":"${prefix}`;
    pieces.push(Buffer.from(text), image.base64);
    text = `"${closed(after)}`;
  });
  pieces.push(Buffer.from(`${text}]${closed(rest)}`));
  return {
    headers: { 'content-type': JSON_TYPE },
    length: pieces.reduce((sum, { byteLength }) => sum + byteLength, 0),
    pieces: () => pieces,
  };
}

function openingOf(members: object): string {
  const text = JSON.stringify(members).slice(0, -1);
  return text === '{' ? text : `${text},`;
}

function closed(members: object): string {
  const text = JSON.stringify(members).slice(1);
  return text === '}' ? text : `,${text}`;
}

/* The member `usage` of answers with images, in the forms of several APIs. */

export type UsageForm = (result: ImagesResult, settlement: Settlement) => Readonly<Record<string, unknown>>;

/** The images, the tokens of words if they have a price, and the cost. */
const billedUsage = ({ images, words }: ImagesResult, { charged, fee }: Settlement) => ({
  images: images.length,
  ...(words === undefined ? {} : { prompt_tokens: Number(words) }),
  cost: toUsdNumber(charged),
  cost_details: { charged_usd: formatUsd(charged), fee_usd: formatUsd(fee) },
});

const countsOf = ({ raw }: ImagesResult): Readonly<Record<string, unknown>> =>
  isObject(raw['usage']) ? raw['usage'] : {};

/** The images and their cost, and the tokens if the provider counted any. */
export const ownUsage: UsageForm = (result, settlement) => ({
  ...countsOf(result),
  ...billedUsage(result, settlement),
});

/** Clients of OpenAI's API parse the numbers of tokens. Most providers of images count none. */
const measuredCounts = (words: number) => ({
  input_tokens: words,
  input_tokens_details: { image_tokens: 0, text_tokens: words },
  output_tokens: 0,
  total_tokens: words,
});

export const openaiUsage: UsageForm = (result, settlement) => ({
  ...measuredCounts(Number(result.words ?? 0n)),
  ...ownUsage(result, settlement),
});

export const openrouterUsage: UsageForm = (result, settlement) => {
  const counts = countsOf(result);
  const { cost, cost_details: details, images, prompt_tokens: words = 0 } = billedUsage(result, settlement);
  const prompt = wholeOf(counts['input_tokens']) ?? wholeOf(counts['prompt_tokens']) ?? words;
  const completion = wholeOf(counts['output_tokens']) ?? wholeOf(counts['completion_tokens']) ?? 0;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: wholeOf(counts['total_tokens']) ?? prompt + completion,
    images,
    cost,
    is_byok: false,
    // Clients of this API parse the last two members as numbers, and fail if one is missing.
    cost_details: {
      ...details,
      upstream_inference_prompt_cost: 0,
      upstream_inference_completions_cost: cost,
    },
  };
};

const wholeOf = (value: unknown): number | null => (Number.isSafeInteger(value) ? (value as number) : null);
