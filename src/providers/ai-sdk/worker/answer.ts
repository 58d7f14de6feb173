import type { JsonObject } from '#wire';
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { answerChat } from './chat.ts';
import { answerEmbeddings } from './embeddings.ts';
import { answerImages } from './images.ts';
import { answerSpeech } from './speech.ts';
import { answerTranscriptions } from './transcriptions.ts';
import { answerRerank } from './rerank.ts';
import { answerVideoFile, answerVideoState, startVideo } from './videos.ts';
import { RequestFault, toErrorReply } from './fault.ts';
import { isRecord } from './json.ts';
import { type Loaded, sendJson, type WorkerCall } from './worker-call.ts';

/** As CONSUMER_HEADER of `network`: the same text for all calls of an account, which it does not reveal. */
const CONSUMER_HEADER = 'x-tollgate-consumer';

type CallHandler = (loaded: Loaded, call: WorkerCall) => Promise<void>;

const ROUTES: Readonly<Record<string, CallHandler>> = {
  '/chat/completions': answerChat,
  '/embeddings': answerEmbeddings,
  '/rerank': answerRerank,
  '/images/generations': answerImages,
  '/images/edits': answerImages,
  '/audio/speech': answerSpeech,
  '/audio/transcriptions': answerTranscriptions,
  '/videos': startVideo,
};

const JOB = /^\/videos\/([\w-]+)(\/content)?$/;

/** Makes the function that answers a stream of the gateway. It never rejects: a failure is a reply, or a reset. */
export function createAnswer(loaded: Loaded) {
  return async (stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> => {
    const clientGone = new AbortController();
    const { signal } = clientGone;
    stream.on('error', () => {});
    stream.on('close', () => clientGone.abort());
    try {
      const path = headers[':path'] ?? '';
      const [, job, content] = JOB.exec(path) ?? [];
      if (job !== undefined) {
        stream.resume();
        // The AI SDK has no method that cancels a job.
        if (headers[':method'] !== 'GET')
          throw new RequestFault('A job of the AI SDK cannot be ended', { status: 405 });
        return await (content === undefined ? answerVideoState : answerVideoFile)(loaded, { job, stream, signal });
      }
      const route = ROUTES[path];
      if (route === undefined) throw new RequestFault(`A package of the AI SDK has no ${path}`, { status: 404 });
      const body = await bodyOf(stream, headers['content-type'] ?? '');
      const consumer = headers[CONSUMER_HEADER];
      await route(loaded, { body, stream, signal, consumer: typeof consumer === 'string' ? consumer : undefined });
    } catch (error) {
      fail(stream, error);
    }
  };
}

/** Before a head, a failure is a reply with its status. After it, an event of the stream, as chat providers send it. */
function fail(stream: ServerHttp2Stream, error: unknown): void {
  if (stream.destroyed || stream.closed) return;
  const { status, headers, body } = toErrorReply(error);
  // The gateway does not show the words of a failing provider to its clients, so the operator gets them here.
  if (status >= 500) console.error(`a call failed with status ${status}: ${String(body.error['message'])}`);
  if (stream.headersSent) return void stream.end(`data: ${JSON.stringify(body)}\n\n`);
  sendJson(stream, body, status, headers);
}

async function bodyOf(stream: ServerHttp2Stream, type: string): Promise<JsonObject> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  const body: unknown = type.startsWith('multipart/') ? await formOf(bytes, type) : parsed(bytes);
  if (!isRecord(body)) throw new RequestFault('The body must be a JSON object');
  return body;
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8')) as unknown;
  } catch {
    throw new RequestFault('The body is no JSON');
  }
}

/**
 * A form as the JSON of the same request. Pictures are data URLs, a file with sound is its bytes and its type. Files of
 * an edit are `images` and `mask`, those of a video have the names of its fields, of which `[]` makes a list.
 */
async function formOf(bytes: Buffer<ArrayBuffer>, type: string): Promise<JsonObject> {
  // oxlint-disable-next-line typescript/no-deprecated -- the gateway wrote this form itself, within its bounds
  const form = await new Response(bytes, { headers: { 'content-type': type } }).formData();
  const body: Record<string, unknown> = {};
  const add = (name: string, value: unknown, isList: boolean) => {
    if (isList) ((body[name] ??= []) as unknown[]).push(value);
    else body[name] = value;
  };
  for (const [name, value] of form) {
    if (typeof value === 'string') {
      const [, field, list] = ADDRESS.exec(name) ?? [];
      if (field !== undefined) add(field, { image_url: value }, list !== undefined);
      else if (name.endsWith('[]')) add(name, value, true);
      else body[name] = /^-?\d{1,15}$/.test(value) && name !== 'prompt' ? Number(value) : value;
      continue;
    }
    const content = Buffer.from(await value.arrayBuffer());
    if (name === 'file') {
      body['file'] = { data: content, mediaType: value.type };
      continue;
    }
    const file = { image_url: `data:${value.type};base64,${content.toString('base64')}` };
    if (name === 'image' || name === 'image[]') add('images', file, true);
    else add(name.replace('[]', ''), file, name.endsWith('[]'));
  }
  return body;
}

/** A field of a video whose file is named by an address: `input_reference[image_url]`. */
const ADDRESS = /^(\w+)(\[\])?\[image_url\]$/;
