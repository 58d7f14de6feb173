import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request as the service got it. */
export interface AudioRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The JSON of a request for speech; null for a form. */
  readonly json: Readonly<Record<string, unknown>> | null;
  /** The parts of a form, without its file. */
  readonly fields: readonly (readonly [name: string, text: string])[];
  readonly file: { readonly name: string; readonly type: string; readonly bytes: Buffer } | null;
}

export interface AudioReply {
  readonly status?: number;
  readonly type: string;
  /** The body, in these pieces. */
  readonly pieces: readonly (Buffer | string)[];
  /** Each piece but the first waits for it. */
  readonly until?: Promise<unknown>;
  /** The connection is cut after the pieces. */
  readonly cut?: true;
}

export interface AudioUpstream {
  /** Base URL with `/v1`. */
  readonly url: string;
  readonly asked: AudioRequest[];
  /** Answers every request from now on. */
  answer: (request: AudioRequest) => AudioReply;
  stop(): Promise<void>;
}

export const json = (body: object, status = 200): AudioReply => ({
  status,
  type: 'application/json',
  pieces: [JSON.stringify(body)],
});

export const events = (...of: readonly object[]): AudioReply => ({
  type: 'text/event-stream',
  pieces: of.map((event) => `event: ${(event as { type: string }).type}\ndata: ${JSON.stringify(event)}\n\n`),
});

/** A service of audio that says what a test tells it to. */
export async function startAudio(): Promise<AudioUpstream> {
  const asked: AudioRequest[] = [];
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => void answer(Buffer.concat(chunks)));
    const answer = async (bytes: Buffer<ArrayBuffer>) => {
      const { headers, url = '' } = incoming;
      const request = await read(url.replace(/^\/v1/, ''), headers, bytes);
      asked.push(request);
      const { status = 200, type, pieces, until, cut } = upstream.answer(request);
      response.writeHead(status, { 'content-type': type });
      const [first = '', ...rest] = pieces;
      response.write(first);
      await until;
      for (const piece of rest) response.write(piece);
      if (cut) response.destroy();
      else response.end();
    };
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const upstream: AudioUpstream = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    asked,
    answer: () => {
      throw new Error('no answer was given');
    },
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
  return upstream;
}

async function read(path: string, headers: IncomingHttpHeaders, bytes: Buffer<ArrayBuffer>): Promise<AudioRequest> {
  const type = headers['content-type'] ?? '';
  if (!type.startsWith('multipart/'))
    return { path, headers, json: JSON.parse(bytes.toString()) as AudioRequest['json'], fields: [], file: null };
  // oxlint-disable-next-line typescript/no-deprecated -- the form is the gateway's own
  const form = await new Response(bytes, { headers: { 'content-type': type } }).formData();
  const fields: (readonly [string, string])[] = [];
  let file: AudioRequest['file'] = null;
  for (const [name, value] of form) {
    if (typeof value === 'string') fields.push([name, value]);
    else file = { name: value.name, type: value.type, bytes: Buffer.from(await value.arrayBuffer()) };
  }
  return { path, headers, json: null, fields, file };
}
