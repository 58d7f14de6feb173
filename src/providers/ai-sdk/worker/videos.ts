import type { ServerHttp2Stream } from 'node:http2';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type {
  Experimental_VideoModelV4OperationStatusResult as StatusResult,
  Experimental_VideoModelV4VideoData as VideoData,
  JSONValue,
  ProviderV4,
} from '@ai-sdk/provider';
import { RequestFault } from './fault.ts';
import { isRecord, listOf, stringOf } from './json.ts';
import { RequestFiles } from './load-file.ts';
import { toVideoOptions } from './video-options.ts';
import { type Loaded, modelOf, sendJson, type WorkerCall } from './worker-call.ts';

/*
 * OpenAI's API for videos: a job, its state and its file. The id of a job says all that its package needs to find it
 * again, so nothing of it is lost with this process.
 */

interface JobCall extends Pick<WorkerCall, 'stream' | 'signal'> {
  readonly job: string;
}

const JOB_CHARS_MAX = 1_024;

/** Starts a job. Throws RequestFault, or what the package throws. */
export async function startVideo(loaded: Loaded, call: WorkerCall): Promise<void> {
  const { body, stream } = call;
  const modelId = stringOf(body['model']) ?? '';
  const { model, doStart } = videoModel(loaded.provider, modelId);
  const options = await toVideoOptions(body, model.provider, new RequestFiles(loaded.strangeFetch, call));
  // A job that has begun is not left alone because its client went away: the gateway has to learn its id.
  const { operation, warnings } = await doStart(options);
  for (const warning of warnings) console.error(`a video has begun, with a warning: ${JSON.stringify(warning)}`);
  const id = toJob(modelId, operation);
  if (id.length > JOB_CHARS_MAX)
    throw new Error(`the vendor's name of a job is longer than ${JOB_CHARS_MAX} characters`);
  if (stream.destroyed) return console.error(`a video has begun after nobody waited for it any more: ${id}`);
  sendJson(stream, { id, object: 'video', status: 'queued' });
}

export async function answerVideoState(loaded: Loaded, call: JobCall): Promise<void> {
  const { job, stream } = call;
  const state = await stateOf(loaded, call);
  if (stream.destroyed) return;
  const base = { id: job, object: 'video' };
  if (state.status === 'pending') return sendJson(stream, { ...base, status: 'in_progress' });
  if (state.status === 'completed') return sendJson(stream, { ...base, status: 'completed', progress: 100 });
  const error = { code: 'generation_failed', message: state.error };
  sendJson(stream, { ...base, status: 'failed', error });
}

/** Answers with the file of a job: the first, because each job makes one. */
export async function answerVideoFile(loaded: Loaded, call: JobCall): Promise<void> {
  const { stream, signal } = call;
  const state = await stateOf(loaded, call);
  const file = state.status === 'completed' ? state.videos[0] : undefined;
  if (file === undefined) throw new RequestFault('This video has no file', { status: 404 });
  if (stream.destroyed) return;
  if (file.type === 'url') return passOn(file, stream, signal);
  if (file.type === 'uploaded') throw new Error('the vendor keeps the file of a video to itself');
  const bytes = file.type === 'base64' ? Buffer.from(file.data, 'base64') : file.data;
  stream.respond({ ':status': 200, 'content-type': file.mediaType, 'content-length': bytes.byteLength });
  stream.end(bytes);
}

/** Loads a file from where its vendor has it, no faster than the gateway takes it. */
async function passOn(file: VideoData & { type: 'url' }, stream: ServerHttp2Stream, signal: AbortSignal) {
  const response = await fetch(file.url, { signal });
  if (!response.ok || response.body === null) throw new Error(`the file of a video answered ${response.status}`);
  const length = response.headers.get('content-length');
  stream.respond({
    ':status': 200,
    'content-type': file.mediaType,
    ...(length === null ? {} : { 'content-length': length }),
  });
  // A file that breaks off resets the stream, so that the gateway does not take it for a whole one.
  await pipeline(Readable.fromWeb(response.body), stream).catch(() => stream.destroy());
}

/** Errors with which packages say that the job has ended without a video, such as one that the vendor filtered. */
const ENDED = /_VIDEO_GENERATION_(?:ERROR|FAILED)$/;

async function stateOf({ provider }: Loaded, { job, signal }: JobCall): Promise<StatusResult> {
  const { modelId, operation } = fromJob(job);
  const { doStatus } = videoModel(provider, modelId);
  try {
    return await doStatus({ operation, abortSignal: signal });
  } catch (error) {
    const { name, message, statusCode } = isRecord(error) ? error : {};
    if (statusCode !== undefined || !ENDED.test(String(name))) throw error;
    // The message may have the vendor's whole reply, which is for the operator alone.
    console.error(`a job has ended without a video: ${String(message)}`);
    const response = { timestamp: new Date(), modelId, headers: undefined };
    return { status: 'error', error: 'The vendor ended the job without a video', response };
  }
}

/** Throws RequestFault if the package has no such models, or none that can be asked for later. */
function videoModel(provider: ProviderV4, modelId: string) {
  const model = modelOf(provider, 'video', modelId);
  if (model === null) throw new RequestFault('This package of the AI SDK makes no videos', { status: 404 });
  const { doStart, doStatus } = model;
  if (doStart === undefined || doStatus === undefined)
    throw new RequestFault('This package of the AI SDK makes videos only while a process waits, which may end', {
      status: 404,
    });
  return {
    model,
    doStart: (options: Parameters<typeof doStart>[0]) => doStart.call(model, options),
    doStatus: (options: Parameters<typeof doStatus>[0]) => doStatus.call(model, options),
  };
}

const toJob = (modelId: string, operation: JSONValue): string =>
  Buffer.from(JSON.stringify([modelId, operation])).toString('base64url');

function fromJob(job: string): { readonly modelId: string; readonly operation: JSONValue } {
  try {
    const [modelId, operation] = listOf(JSON.parse(Buffer.from(job, 'base64url').toString('utf8')));
    if (typeof modelId === 'string' && operation !== undefined) return { modelId, operation: operation as JSONValue };
  } catch {
    // Not JSON.
  }
  throw new RequestFault('There is no such job', { status: 404 });
}
