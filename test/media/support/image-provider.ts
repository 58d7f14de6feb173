import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { toPng } from '../../../src/program/demo/png.ts';

/** A PNG of this size, of one colour. */
export const png = (width: number, height: number): Buffer =>
  toPng({ width, height, pixels: new Uint8Array(new Uint32Array(width * height).fill(0xff_2d_28_c8).buffer) });

/** A PNG that states this size and has the pixels of a small one, so that a large one costs nothing to make. */
export function pngThatSays(width: number, height: number): Buffer {
  const image = png(8, 8);
  image.writeUInt32BE(width, 16);
  image.writeUInt32BE(height, 20);
  return image;
}

export interface ImageRequest {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Record<string, unknown>;
  /** The form of an edit; null for JSON. */
  readonly form: FormData | null;
}

export type Answering = (request: ImageRequest, response: ServerResponse) => void | Promise<void>;

/** An API that makes images, on a real socket. It answers as it is told to. */
export interface ImageProvider {
  /** Base URL with `/v1`. */
  readonly url: string;
  readonly requests: ImageRequest[];
  /** What answers from now on; default paintAsAsked. */
  answer(how: Answering): void;
  close(): Promise<void>;
}

export const json = (response: ServerResponse, status: number, value: unknown): void => {
  response
    .writeHead(status, { 'content-type': 'application/json' })
    .end(typeof value === 'string' ? value : JSON.stringify(value));
};

/** As many images as are asked for, of the size that is asked for. */
export const paintAsAsked: Answering = ({ body }, response) => {
  const [width = 64, height = 64] = String(body['size'] ?? '64x64')
    .split('x')
    .map(Number);
  const b64 = png(width, height).toString('base64');
  const data = Array.from({ length: Number(body['n'] ?? 1) }, () => ({ b64_json: b64 }));
  json(response, 200, { created: 1_700_000_000, data, size: `${width}x${height}` });
};

/** An answer with exactly these images. */
export const answerWith =
  (...data: readonly object[]): Answering =>
  (_request, response) =>
    json(response, 200, { created: 1_700_000_000, data });

const fieldsOf = (form: FormData) => Object.fromEntries([...form].filter(([, value]) => typeof value === 'string'));

export async function startImageProvider(): Promise<ImageProvider> {
  const requests: ImageRequest[] = [];
  let answering: Answering = paintAsAsked;
  const server = createServer((incoming, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
      const bytes = Buffer.concat(chunks);
      const text = bytes.toString();
      const type = incoming.headers['content-type'] ?? '';
      const form = type.startsWith('multipart/')
        ? await new Response(bytes, { headers: { 'content-type': type } }).formData()
        : null;
      const body = (form !== null ? fieldsOf(form) : text.startsWith('{') ? JSON.parse(text) : {}) as Record<
        string,
        unknown
      >;
      const request = { path: incoming.url!, headers: incoming.headers, body, form };
      requests.push(request);
      await answering(request, response);
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    answer(how) {
      answering = how;
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

interface ImageBlock {
  readonly name?: string;
  /** Unique per name. */
  readonly provider?: string;
  readonly url: string;
  /** USD per image. */
  readonly generation?: number;
  readonly model?: string;
  /** More lines of the block, before its tables. */
  readonly lines?: string;
  /** More lines of `[images.pricing]`. */
  readonly pricing?: string;
  /** More lines of `[images.params]`. */
  readonly params?: string;
}

/** One `[[images]]` block. */
export const imageBlock = (block: ImageBlock): string => `
[[images]]
name = "${block.name ?? 'test/paint'}"
display_name = "Test: Paint"
provider_name = "${block.provider ?? 'Painter'}"
${block.lines ?? ''}
[images.pricing]
generation = ${block.generation ?? 0.04}
${block.pricing ?? ''}
[images.params]
model = "${block.model ?? 'upstream-paint'}"
api_base = "${block.url}"
api_key = "image-secret-canary"
${block.params ?? ''}
`;

export interface Images {
  readonly id: string;
  readonly created: number;
  readonly status: string;
  readonly images: readonly {
    readonly index: number;
    readonly data_url: string;
    readonly width: number;
    readonly height: number;
    readonly format: string;
    readonly seed: number | null;
    readonly revised_prompt?: string;
  }[];
  readonly input_images?: readonly { readonly width: number; readonly height: number }[];
  readonly provider_metadata: { readonly provider: string; readonly raw: Record<string, unknown> };
  readonly usage: { readonly images: number; readonly cost: number };
}
