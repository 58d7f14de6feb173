import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { answerChat } from './chat.ts';
import { answerEmbeddings } from './embeddings.ts';
import { answerImages } from './images.ts';
import { answerSpeech } from './speech.ts';
import { answerTranscriptions } from './transcriptions.ts';
import { answerRerank } from './rerank.ts';
import { RequestFault, toErrorReply } from './fault.ts';
import { isRecord, type Json } from './json.ts';
import { type Loaded, sendJson, type WorkerCall } from './worker-call.ts';

type Answer = (loaded: Loaded, call: WorkerCall) => Promise<void>;

const ROUTES: Readonly<Record<string, Answer>> = {
  '/chat/completions': answerChat,
  '/embeddings': answerEmbeddings,
  '/rerank': answerRerank,
  '/images/generations': answerImages,
  '/images/edits': answerImages,
  '/audio/speech': answerSpeech,
  '/audio/transcriptions': answerTranscriptions,
};

/** Makes the function that answers a stream of the gateway. It never rejects: a failure is a reply, or a reset. */
export function createAnswer(loaded: Loaded) {
  return async (stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> => {
    const left = new AbortController();
    stream.on('error', () => {});
    stream.on('close', () => left.abort());
    try {
      const route = ROUTES[headers[':path'] ?? ''];
      if (route === undefined)
        throw new RequestFault(`A package of the AI SDK has no ${String(headers[':path'])}`, { status: 404 });
      const body = await bodyOf(stream, headers['content-type'] ?? '');
      await route(loaded, { body, stream, signal: left.signal });
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

async function bodyOf(stream: ServerHttp2Stream, type: string): Promise<Json> {
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

/** A form as the JSON of the same request. Pictures are data URLs, a file with sound is its bytes and its type. */
async function formOf(bytes: Buffer<ArrayBuffer>, type: string): Promise<Json> {
  // oxlint-disable-next-line typescript/no-deprecated -- the gateway wrote this form itself, within its bounds
  const form = await new Response(bytes, { headers: { 'content-type': type } }).formData();
  const body: Record<string, unknown> = {};
  const images: unknown[] = [];
  for (const [name, value] of form) {
    if (typeof value === 'string') {
      if (name.endsWith('[]')) ((body[name] ??= []) as unknown[]).push(value);
      else body[name] = /^-?\d{1,15}$/.test(value) && name !== 'prompt' ? Number(value) : value;
      continue;
    }
    const bytes = Buffer.from(await value.arrayBuffer());
    if (name === 'file') {
      body['file'] = { data: bytes, mediaType: value.type };
      continue;
    }
    const base64 = bytes.toString('base64');
    const image = { image_url: `data:${value.type};base64,${base64}` };
    if (name === 'mask') body['mask'] = image;
    else images.push(image);
  }
  return images.length === 0 ? body : { ...body, images };
}
