import { createHash } from 'node:crypto';
import { isObject, RequestError } from './request.ts';
import { type Picture, toPng } from './png.ts';
import { seedOf } from './seed.ts';

const IMAGES_MAX = 10;
const EDGE_MAX = 4096;
const SKIES = 64;

/**
 * Answers `POST /v1/images/generations`. Each image is a tollgate in a landscape. The prompt and the seed decide what
 * it looks like.
 */
export function paintImages(body: unknown, created: number): object {
  if (!isObject(body)) throw new RequestError('The body must be a JSON object.', null);
  const { prompt, n = 1, size = '1024x1024', seed, response_format: format } = body;
  if (typeof prompt !== 'string' || prompt === '') throw new RequestError('prompt must be a text.', 'prompt');
  if (!Number.isInteger(n) || (n as number) < 1 || (n as number) > IMAGES_MAX)
    throw new RequestError(`n must be an integer from 1 to ${IMAGES_MAX}.`, 'n');
  const edges = /^(\d{2,4})x(\d{2,4})$/.exec(String(size));
  const [width, height] = [Number(edges?.[1]), Number(edges?.[2])];
  if (!(width > 0 && height > 0 && width <= EDGE_MAX && height <= EDGE_MAX))
    throw new RequestError('size must be written like 1024x1024.', 'size');
  if (format !== undefined && format !== 'b64_json')
    throw new RequestError('response_format must be b64_json.', 'response_format');
  const first = seedOf(seed);
  const data = Array.from({ length: n as number }, (_, index) => ({
    b64_json: toPng(paint(prompt, first + index, width, height)).toString('base64'),
    seed: first + index,
  }));
  return { created, data, size: `${width}x${height}`, output_format: 'png' };
}

/** Paints a sky with a colour gradient, a sun, two hills, and a striped bar in front of a booth. */
function paint(prompt: string, seed: number, width: number, height: number): Picture {
  const chance = createHash('sha256')
    .update(JSON.stringify([prompt, seed]))
    .digest();
  const of = (index: number) => chance[index]! / 255;
  const hue = of(0);
  const palette = [
    ...Array.from({ length: SKIES }, (_, step) => colour(hue, 0.55, 0.45 + (0.45 * step) / SKIES)),
    colour(hue + 0.5, 0.8, 0.75),
    colour(hue + 0.3, 0.35, 0.4),
    colour(hue + 0.3, 0.4, 0.28),
    [245, 245, 240],
    [200, 40, 45],
    [60, 55, 60],
  ] as const;
  const [SUN, FAR, NEAR, WHITE, RED, BOOTH] = [0, 1, 2, 3, 4, 5].map((place) => SKIES + place) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const edge = Math.min(width, height);
  const sun = { x: width * (0.2 + 0.6 * of(1)), y: height * (0.15 + 0.3 * of(2)), r: edge * (0.06 + 0.06 * of(3)) };
  const hill = (x: number, place: number, level: number) =>
    height * (level + 0.06 * Math.sin((x / width) * (3 + 4 * of(place)) + 6 * of(place + 1)));
  const bar = { top: height * 0.72, bottom: height * 0.76, left: width * 0.18 };
  const booth = { top: height * 0.6, bottom: height * 0.92, left: width * 0.12, right: width * 0.2 };
  const pixels = new Uint8Array(width * height);
  for (let x = 0; x < width; x += 1) {
    const far = hill(x, 4, 0.6);
    const near = hill(x, 6, 0.78);
    for (let y = 0; y < height; y += 1) {
      let place = Math.min(SKIES - 1, Math.floor((y / height) * SKIES));
      if ((x - sun.x) ** 2 + (y - sun.y) ** 2 < sun.r ** 2) place = SUN;
      if (y > far) place = FAR;
      if (y > near) place = NEAR;
      if (x > booth.left && x < booth.right && y > booth.top && y < booth.bottom) place = BOOTH;
      if (x > bar.left && y > bar.top && y < bar.bottom) place = Math.floor((x + y) / (edge / 16)) % 2 ? RED : WHITE;
      pixels[y * width + x] = place;
    }
  }
  return { width, height, palette, pixels };
}

/** Converts HSL to RGB. `hue` is in turns: 1 is the full circle. */
function colour(hue: number, saturation: number, lightness: number): readonly [number, number, number] {
  const part = (offset: number) => {
    const k = (offset + (hue % 1) * 12) % 12;
    const amount = saturation * Math.min(lightness, 1 - lightness);
    return Math.round(255 * (lightness - amount * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [part(0), part(8), part(4)];
}
