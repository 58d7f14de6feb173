import { createHash, randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readPng, toPng, type Rgba } from './png.ts';
import { isObject, RequestError } from './request.ts';

/* The demo's image model: tollgates in a few landscapes, and a bar over images that are edited. */

const IMAGES_MAX = 10;
const EDGE_MAX = 4096;
const LANDSCAPES = 4;

/** Answers `POST /v1/images/generations`. The prompt and the seed decide on the landscape of an image and its light. */
export function generateImages(body: unknown, created: number): object {
  if (!isObject(body)) throw new RequestError('The body must be a JSON object.', null);
  const { prompt, n = 1, size = '1024x1024', seed, response_format: format } = body;
  if (typeof prompt !== 'string' || prompt === '') throw new RequestError('prompt must be a text.', 'prompt');
  const count = countOf(n);
  const [width, height] = edgesOf(size);
  if (format !== undefined && format !== 'b64_json')
    throw new RequestError('response_format must be b64_json.', 'response_format');
  const first = seedOf(seed);
  const data = Array.from({ length: count }, (_, index) => ({
    b64_json: base64Of(scaled(landscapeOf(prompt, first + index), width, height)),
    seed: first + index,
  }));
  return { created, data, size: `${width}x${height}`, output_format: 'png' };
}

/**
 * Answers `POST /v1/images/edits`, whose body is a form. Paints a striped bar over the first image, at a height that
 * depends on the prompt. If there is a mask, the bar is painted only where the mask is transparent.
 */
export async function editImages(form: FormData, created: number): Promise<object> {
  const prompt = form.get('prompt');
  if (typeof prompt !== 'string' || prompt === '') throw new RequestError('prompt must be a text.', 'prompt');
  const count = countOf(Number(form.get('n') ?? 1));
  const base = await pictureOf(form.get('image') ?? form.get('image[]'), 'image');
  if (base === null) throw new RequestError('image must be a file.', 'image');
  const mask = await pictureOf(form.get('mask'), 'mask');
  const size = form.get('size');
  const [width, height] = size === null ? [base.width, base.height] : edgesOf(size);
  const first = seedOf(Number(form.get('seed') ?? -1));
  const data = Array.from({ length: count }, (_, index) => {
    const picture = scaled(base, width, height);
    paintBar(picture, mask && scaled(mask, width, height), chanceOf(prompt, first + index)[0]! / 255);
    return { b64_json: base64Of(picture) };
  });
  return { created, data, size: `${width}x${height}`, output_format: 'png' };
}

function countOf(n: unknown): number {
  if (!Number.isInteger(n) || (n as number) < 1 || (n as number) > IMAGES_MAX)
    throw new RequestError(`n must be an integer from 1 to ${IMAGES_MAX}.`, 'n');
  return n as number;
}

function edgesOf(size: unknown): readonly [width: number, height: number] {
  const edges = /^(\d{2,4})x(\d{2,4})$/.exec(String(size));
  const [width, height] = [Number(edges?.[1]), Number(edges?.[2])];
  if (!(width > 0 && height > 0 && width <= EDGE_MAX && height <= EDGE_MAX))
    throw new RequestError('size must be written like 1024x1024.', 'size');
  return [width, height];
}

async function pictureOf(entry: string | File | null, param: string): Promise<Rgba | null> {
  return entry === null || typeof entry === 'string' ? null : readPng(Buffer.from(await entry.arrayBuffer()), param);
}

/**
 * The largest seed of a request. The images of one request have consecutive seeds, so a random seed stays below it.
 */
const SEED_MAX = 2_147_483_647;

/** Returns the seed of a request if it is 0 or more. Otherwise, also for -1, returns a new random seed. */
const seedOf = (value: unknown): number =>
  Number.isInteger(value) && (value as number) >= 0 ? (value as number) : randomInt(SEED_MAX - IMAGES_MAX);

/** Bytes that are always the same for the same prompt and seed. */
const chanceOf = (prompt: string, seed: number): Buffer =>
  createHash('sha256')
    .update(JSON.stringify([prompt, seed]))
    .digest();

const base64Of = (picture: Rgba): string => toPng(picture).toString('base64');

const landscapes = new Map<number, Rgba>();

/** One of the landscapes. Its red, green and blue are darkened by up to a third, so that images of two seeds differ. */
function landscapeOf(prompt: string, seed: number): Rgba {
  const [place = 0, ...light] = chanceOf(prompt, seed);
  const index = place % LANDSCAPES;
  let picture = landscapes.get(index);
  if (picture === undefined) {
    const file = readFileSync(new URL(`./fixtures/landscape-${index + 1}.png`, import.meta.url));
    landscapes.set(index, (picture = readPng(file, 'image')));
  }
  const pixels = picture.pixels.map((value, at) => (at % 4 === 3 ? value : value * (1 - light[at % 4]! / 765)));
  return { ...picture, pixels };
}

function scaled({ width: sourceWidth, height: sourceHeight, pixels }: Rgba, width: number, height: number): Rgba {
  const source = new Uint32Array(pixels.buffer, pixels.byteOffset, sourceWidth * sourceHeight);
  const drawn = new Uint32Array(width * height);
  for (let y = 0; y < height; y += 1) {
    const row = Math.floor((y * sourceHeight) / height) * sourceWidth;
    for (let x = 0; x < width; x += 1) drawn[y * width + x] = source[row + Math.floor((x * sourceWidth) / width)]!;
  }
  return { width, height, pixels: new Uint8Array(drawn.buffer) };
}

const RED = [200, 40, 45, 255];
const WHITE = [245, 245, 240, 255];

/** `level`: how low the bar is, from 0 to 1. */
function paintBar({ width, height, pixels }: Rgba, mask: Rgba | null, level: number): void {
  const top = height * (0.1 + 0.7 * level);
  const bottom = top + height * 0.1;
  const stripe = Math.max(2, Math.min(width, height) / 12);
  for (let y = Math.ceil(top); y < bottom; y += 1)
    for (let x = 0; x < width; x += 1) {
      const at = (y * width + x) * 4;
      if (mask !== null && mask.pixels[at + 3] !== 0) continue;
      pixels.set(Math.floor((x + y) / stripe) % 2 ? RED : WHITE, at);
    }
}
