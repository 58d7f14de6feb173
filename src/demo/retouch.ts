import { createHash } from 'node:crypto';
import { type Rgba, rgbaToPng } from './png.ts';
import { readPng } from './read-png.ts';
import { RequestError } from './request.ts';
import { seedOf } from './seed.ts';

const IMAGES_MAX = 10;
const EDGE_MAX = 4096;

/**
 * Answers `POST /v1/images/edits`, whose body is a form. Paints a striped bar over the first image, at a height that
 * depends on the prompt. If there is a mask, the bar is painted only where the mask is transparent.
 */
export async function retouchImages(form: FormData, created: number): Promise<object> {
  const prompt = form.get('prompt');
  if (typeof prompt !== 'string' || prompt === '') throw new RequestError('prompt must be a text.', 'prompt');
  const n = Number(form.get('n') ?? 1);
  if (!Number.isInteger(n) || n < 1 || n > IMAGES_MAX)
    throw new RequestError(`n must be an integer from 1 to ${IMAGES_MAX}.`, 'n');
  const base = await pictureOf(form.get('image') ?? form.get('image[]'), 'image');
  if (base === null) throw new RequestError('image must be a file.', 'image');
  const mask = await pictureOf(form.get('mask'), 'mask');
  const size = form.get('size');
  const [width, height] = size === null ? [base.width, base.height] : edgesOf(size);
  const first = seedOf(Number(form.get('seed') ?? -1));
  const data = Array.from({ length: n }, (_, index) => ({
    b64_json: rgbaToPng(lowerBar(base, mask, prompt, first + index, width, height)).toString('base64'),
  }));
  return { created, data, size: `${width}x${height}`, output_format: 'png' };
}

function edgesOf(size: string | File): readonly [number, number] {
  const edges = /^(\d{2,4})x(\d{2,4})$/.exec(typeof size === 'string' ? size : '');
  const [width, height] = [Number(edges?.[1]), Number(edges?.[2])];
  if (!(width > 0 && height > 0 && width <= EDGE_MAX && height <= EDGE_MAX))
    throw new RequestError('size must be written like 1024x1024.', 'size');
  return [width, height];
}

async function pictureOf(entry: string | File | null, param: string): Promise<Rgba | null> {
  return entry === null || typeof entry === 'string' ? null : readPng(Buffer.from(await entry.arrayBuffer()), param);
}

const RED = [200, 40, 45];
const WHITE = [245, 245, 240];

function lowerBar(base: Rgba, mask: Rgba | null, prompt: string, seed: number, width: number, height: number): Rgba {
  const level =
    createHash('sha256')
      .update(JSON.stringify([prompt, seed]))
      .digest()[0]! / 255;
  const top = height * (0.1 + 0.7 * level);
  const bottom = top + height * 0.1;
  const stripe = Math.max(2, Math.min(width, height) / 12);
  const pixels = new Uint8Array(width * height * 4);
  for (let y = 0; y < height; y += 1)
    for (let x = 0; x < width; x += 1) {
      const at = (y * width + x) * 4;
      pixels.set(pixelAt(base, x / width, y / height), at);
      const open = mask === null || pixelAt(mask, x / width, y / height)[3] === 0;
      if (open && y >= top && y < bottom) pixels.set([...(Math.floor((x + y) / stripe) % 2 ? RED : WHITE), 255], at);
    }
  return { width, height, pixels };
}

/** `across` and `down` are fractions of the width and the height. */
function pixelAt({ width, height, pixels }: Rgba, across: number, down: number): Uint8Array {
  const at = (Math.floor(down * height) * width + Math.floor(across * width)) * 4;
  return pixels.subarray(at, at + 4);
}
