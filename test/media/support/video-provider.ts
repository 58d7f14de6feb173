import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tinyMp4 } from './tiny-mp4.ts';

/** One job of the provider. A test moves it on. */
export interface Job {
  readonly id: string;
  status: string;
  progress: number | undefined;
  error: object | null;
  file: Buffer;
  /** In place of the file. */
  serve: ((request: IncomingMessage, response: ServerResponse) => void) | null;
  cancelled: boolean;
  /** Requests for its state get no answer. */
  hangs: boolean;
}

export interface VideoRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** A form's fields, files as `<type, bytes>`. */
  readonly body: Record<string, unknown>;
}

/** An API that makes videos, on a real socket. */
export interface VideoProvider {
  /** Base URL with `/v1`. */
  readonly url: string;
  readonly requests: VideoRequest[];
  readonly jobs: Map<string, Job>;
  /** What each new job is from now on; default completed with a file that is as long as it should be. */
  begin(how: (seconds: number) => Partial<Job>): void;
  /** Answers the next requests to create; null: as usual. */
  refuse(how: ((request: VideoRequest, response: ServerResponse) => boolean) | null): void;
  cancels: boolean;
  last(): Job;
  close(): Promise<void>;
}

const json = (response: ServerResponse, status: number, value: unknown): void => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
};

/** `port`: default a free one. `jobs`: those of one that was here before. */
export async function startVideoProvider({
  port = 0,
  jobs = new Map(),
}: { readonly port?: number; readonly jobs?: Map<string, Job> } = {}): Promise<VideoProvider> {
  const requests: VideoRequest[] = [];
  let beginning: (seconds: number) => Partial<Job> = () => ({});
  let refusing: ((request: VideoRequest, response: ServerResponse) => boolean) | null = null;
  let made = 0;

  const answer = (request: VideoRequest, incoming: IncomingMessage, response: ServerResponse): void => {
    const { method, path, body } = request;
    if (path === '/v1/models') return json(response, 200, { object: 'list', data: [] });
    if (method === 'POST' && path === '/v1/videos') {
      if (refusing?.(request, response)) return;
      const seconds = Number(body['seconds'] ?? 4);
      const job: Job = {
        id: `video_${++made}`,
        status: 'completed',
        progress: undefined,
        error: null,
        file: tinyMp4(seconds),
        serve: null,
        cancelled: false,
        hangs: false,
        ...beginning(seconds),
      };
      jobs.set(job.id, job);
      return json(response, 200, { id: job.id, object: 'video', status: 'queued', progress: 0 });
    }
    const [, id = '', content] = /^\/v1\/videos\/([\w-]+)(\/content)?$/.exec(path) ?? [];
    const job = jobs.get(id);
    if (!job) return json(response, 404, { error: { message: `no job ${id}` } });
    if (method === 'DELETE') {
      if (!provider.cancels) return json(response, 405, { error: { message: 'no' } });
      if (job.cancelled) return json(response, 409, { error: { message: 'it is cancelled already' } });
      job.cancelled = true;
      return json(response, 200, { id, deleted: true });
    }
    if (content === undefined) {
      if (job.hangs) return;
      const { status, progress, error } = job;
      return json(response, 200, { id, object: 'video', status, progress, error });
    }
    if (job.serve) return job.serve(incoming, response);
    response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': job.file.length }).end(job.file);
  };

  const server = createServer((incoming, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
      const body = await bodyOf(Buffer.concat(chunks), incoming.headers['content-type'] ?? '');
      const request = { method: incoming.method!, path: incoming.url!, headers: incoming.headers, body };
      requests.push(request);
      answer(request, incoming, response);
    })();
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const provider: VideoProvider = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    jobs,
    cancels: true,
    begin(how) {
      beginning = how;
    },
    refuse(how) {
      refusing = how;
    },
    last: () => [...jobs.values()].at(-1)!,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
  return provider;
}

async function bodyOf(bytes: Buffer, type: string): Promise<Record<string, unknown>> {
  if (type.startsWith('application/json')) return JSON.parse(bytes.toString()) as Record<string, unknown>;
  if (!type.startsWith('multipart/')) return {};
  const form = await new Response(new Uint8Array(bytes), { headers: { 'content-type': type } }).formData();
  const body: Record<string, unknown> = {};
  for (const [name, value] of form) body[name] = typeof value === 'string' ? value : `<${value.type}, ${value.size}>`;
  return body;
}

interface VideoBlock {
  readonly name?: string;
  /** Unique per name. */
  readonly provider?: string;
  readonly url: string;
  /** More lines of the block, before its tables. */
  readonly lines?: string;
  readonly pricing?: string;
}

/** One `[[videos]]` block: 0.1 USD a second in 720p, 0.2 in 1080p, 0.05 a video, twice with sound. */
export const videoBlock = (block: VideoBlock): string => `
[[videos]]
name = "${block.name ?? 'test/film'}"
display_name = "Test: Film"
provider_name = "${block.provider ?? 'Filmer'}"
${block.lines ?? 'durations = ["4s", "8s"]'}
[videos.pricing]
${block.pricing ?? 'per_second = { "720p" = 0.1, "1080p" = 0.2 }\nbase = 0.05\naudio_multiplier = 2'}
[videos.params]
model = "upstream-film"
api_base = "${block.url}"
api_key = "video-secret-canary"
`;

export interface Queued {
  readonly id: string;
  readonly created: number;
  readonly status: string;
  readonly variants_expected: number;
}
