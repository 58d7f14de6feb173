import { UpstreamFailure } from '#wire';
import { type Call, type GeneratedAdapter, endOnly, type ReplyEnd, type Send } from '#call';
import type { Offer } from '#catalog';
import { onceOnly } from '#json-rpc';
import type { Blobs, WantedRoom } from '#files';
import { ownerOf, type TaskKey, type TaskOwner, type Tasks } from '#tasks';
import type { MicroUsd } from '#billing/amounts';
import type { FetchInputs } from '../../request/input-images.ts';
import { type VideoAsk, withFiles } from '../request/video-ask.ts';
import { planAt } from '../video-price.ts';
import { keyOf, notesToText, toVideoId, type VideoNotes } from '../video-task.ts';
import { cancelJob, createAsForm, createAsJson, createdJob, hasFiles, jobFields, sizeAt } from '../openai-videos.ts';
import type { Callbacks } from './callback.ts';
import { askForJson } from './ask-provider.ts';

export interface MakeVideosDeps {
  readonly tasks: Pick<Tasks, 'begin'>;
  readonly blobs: Pick<Blobs, 'takeRoom' | 'giveRoomBack'>;
  readonly now: () => number;
  /** The time of the videos. */
  readonly ttlMs: number;
  /** How much longer a file that is finished in time may wait for its download, and be downloaded. */
  readonly fetchMs: number;
  readonly callbacks: Callbacks;
  /** Fetches inputs from untrusted URLs, for an API that takes only files. */
  readonly fetchInputs: FetchInputs;
}

/** A task that a call has begun. It is the result of the call. */
export interface BegunVideo {
  readonly id: string;
  readonly key: TaskKey;
  readonly owner: TaskOwner;
  readonly notes: VideoNotes;
  /** The key that signs the message to its callback; absent without a callback. */
  readonly callbackSecret?: string;
}

interface VideoAsker {
  readonly requestId: string;
  /** The network of the client; null if it is not known. */
  readonly network: string | null;
  readonly openrouter?: boolean;
}

/** Offers that refuse JSON, and take a form. */
const FORMS_ONLY = new WeakSet<Offer>();
/**
 * Statuses with which an API may say that it wants a form. FastAPI, for example, says that the fields of the form
 * are missing.
 */
const WANTS_FORM: ReadonlySet<number> = new Set([400, 415, 422]);

/**
 * The native side of a call for videos. It creates one job for each variant, and stores the task. The call ends
 * `pending`: its lock is kept until the videos are here.
 */
export function createMakeVideos(
  deps: MakeVideosDeps,
  ask: VideoAsk,
  from: VideoAsker,
): GeneratedAdapter<BegunVideo, never> {
  let call: Call | null = null;
  return {
    begin(prepared) {
      call = prepared;
    },
    startAttempt: (offer, send) => endOnly(() => beginVideos(deps, ask, offer, call!, send, from)),
  };
}

const candidateOf = ({ candidates }: Call, offer: Offer) => candidates.find(({ offer: { id } }) => id === offer.id)!;

async function beginVideos(
  deps: MakeVideosDeps,
  ask: VideoAsk,
  offer: Offer,
  call: Call,
  send: Send,
  from: VideoAsker,
): Promise<ReplyEnd<BegunVideo>> {
  const { id, caller } = call;
  const [key, owner] = [keyOf(offer.service, id), ownerOf(caller)];
  // These come before the jobs. Otherwise nobody might be told of the end, or the files might have no room.
  if (ask.callbackUrl !== null) await deps.callbacks.note(key, owner, ask.callbackUrl);
  let begun: BegunVideo;
  try {
    const { estimate } = candidateOf(call, offer);
    const expiresAt = deps.now() + deps.ttlMs + deps.fetchMs;
    await deps.blobs.takeRoom({ id, account: caller.account, ...roomAt(ask, offer, estimate), expiresAt });
    begun = await make(deps, ask, offer, call, send, from);
  } catch (error) {
    await deps.blobs.giveRoomBack(id).catch(() => {});
    if (ask.callbackUrl !== null) await deps.callbacks.forget(key, owner).catch(() => {});
    throw error;
  }
  return {
    usage: null,
    outcome: 'pending',
    estimated: false,
    finishReason: 'queued',
    flags: [],
    result: begun,
  };
}

/**
 * Creates one job after the other. If a later job is refused, the earlier ones go on. A request whose connection
 * broke may have begun a job nevertheless, so it is not repeated at another offer.
 */
async function createJobs(ask: VideoAsk, offer: Offer, send: Send, requestId: string): Promise<readonly string[]> {
  const jobs: string[] = [];
  while (jobs.length < ask.n) {
    try {
      const job = await createJob(ask, offer, send, requestId);
      if (jobs.includes(job)) break;
      jobs.push(job);
    } catch (error) {
      if (jobs.length > 0 && error instanceof UpstreamFailure) break;
      throw error instanceof UpstreamFailure && error.status === null ? onceOnly(error) : error;
    }
  }
  return jobs;
}

/** Creates the jobs and stores their task. Jobs without a task are cancelled. */
async function make(
  deps: MakeVideosDeps,
  ask: VideoAsk,
  offer: Offer,
  call: Call,
  send: Send,
  { requestId, network, openrouter }: VideoAsker,
): Promise<BegunVideo> {
  const fetched = offer.media!.filesOnly ? deps.fetchInputs(call.caller.account, network) : null;
  let jobs: readonly string[];
  try {
    jobs = await createJobs(fetched === null ? ask : await withFiles(ask, fetched), offer, send, requestId);
  } finally {
    fetched?.release();
  }
  try {
    return await begin(deps, ask, offer, call, { jobs, ...(openrouter ? { openrouter } : {}) });
  } catch (error) {
    await cancelAll(jobs, send, requestId);
    throw error;
  }
}

/** Cancels jobs whose videos nobody would get. Errors are ignored, because the earlier error is the one to report. */
async function cancelAll(jobs: readonly string[], send: Send, requestId: string): Promise<void> {
  for (const job of jobs) await askForJson(send, cancelJob(job, requestId)).catch(() => {});
}

async function createJob(ask: VideoAsk, offer: Offer, send: Send, requestId: string): Promise<string> {
  const fields = jobFields(ask, offer);
  if (!hasFiles(fields) && !FORMS_ONLY.has(offer)) {
    try {
      return createdJob(await askForJson(send, createAsJson(fields, requestId)));
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || !WANTS_FORM.has(error.status ?? 0) || isPackage(offer)) throw error;
      const job = await asForm().catch((second: unknown) => {
        // The API refuses the request in both forms. Its error about the first form says best why.
        throw second instanceof UpstreamFailure && WANTS_FORM.has(second.status ?? 0) ? error : second;
      });
      FORMS_ONLY.add(offer);
      return job;
    }
  }
  return asForm();

  async function asForm(): Promise<string> {
    return createdJob(await askForJson(send, createAsForm(fields, requestId)));
  }
}

/** A package of the AI SDK takes both forms, so that a refusal is its vendor's, who need not be asked twice. */
const isPackage = ({ endpoint }: Offer): boolean => endpoint.kind === 'direct' && endpoint.sdk !== undefined;

async function begin(
  { tasks, ttlMs, fetchMs, now, callbacks }: MakeVideosDeps,
  ask: VideoAsk,
  offer: Offer,
  call: Call,
  videoNotes: Pick<VideoNotes, 'jobs' | 'openrouter'>,
): Promise<BegunVideo> {
  const { id: callId, caller, startedAt, service: model } = call;
  const notes: VideoNotes = {
    ...planAt(ask, offer),
    ...videoNotes,
    model,
    size: sizeAt(ask, offer),
    dueAt: now() + ttlMs,
    ...(offer.endpoint.kind === 'tunnel' ? { dialledIn: true } : {}),
  };
  const { price, estimate: most } = candidateOf(call, offer);
  const key = keyOf(offer.service, callId);
  const owner = ownerOf(caller);
  await tasks.begin(
    {
      ...key,
      ...owner,
      offerId: offer.id,
      provider: offer.provider.id,
      contextId: null,
      state: 'queued',
      notes: notesToText(notes),
      askedAt: startedAt,
      ttlMs: ttlMs + fetchMs,
    },
    { callId, price: price.id, most },
  );
  const begun: BegunVideo = {
    id: toVideoId({ ...key, provider: offer.provider.id }),
    key,
    owner,
    notes,
  };
  return ask.callbackUrl === null ? begun : { ...begun, callbackSecret: callbacks.keyOf(owner) };
}

/**
 * Bytes of a second for each pixel of a picture: 15 Mbit/s in 720p, 33 in 1080p and 133 in 4K. This is more than video
 * models make. A file that is larger nevertheless takes more room while it arrives.
 */
const BYTES_PER_PIXEL = 2;
const USUAL_FRAME_RATE = 30;
/** Sound, headers, and the first picture of a short video. */
const FILE_BYTES_MIN = 4 * 1024 * 1024;
const MIB = 1024 * 1024;
/** Whoever pays less than this for each MiB, in micro-USD, could take all room for next to nothing. */
const FREE_BELOW = 100n;

/** The room for the files of a request at one offer. `estimate`: what the request costs there at most. */
function roomAt(ask: VideoAsk, offer: Offer, estimate: MicroUsd): WantedRoom & { readonly fileBytes: number } {
  const [width, height] = sizeAt(ask, offer).split('x').map(Number);
  const frames = Math.max(1, Number(ask.more['frame_rate'] ?? 0) / USUAL_FRAME_RATE);
  const film = Math.ceil(planAt(ask, offer).seconds * width! * height! * BYTES_PER_PIXEL * frames);
  const fileBytes = Math.max(FILE_BYTES_MIN, film);
  return { files: ask.n, fileBytes, isFree: estimate * BigInt(MIB) < FREE_BELOW * BigInt(ask.n * fileBytes) };
}

/**
 * Checks that an account has room for the videos of a call. Rejects with GatewayError if it has no room for the task or
 * for its files.
 */
export const roomForVideos =
  (tasks: Pick<Tasks, 'admit'>, blobs: Pick<Blobs, 'admit'>, ask: VideoAsk) =>
  async ({ caller, candidates }: Call): Promise<void> => {
    await tasks.admit(ownerOf(caller));
    const rooms = candidates.map(({ offer, estimate }) => roomAt(ask, offer, estimate));
    await blobs.admit(caller.account, {
      files: ask.n,
      fileBytes: Math.max(...rooms.map(({ fileBytes }) => fileBytes)),
      // A free offer among others may be passed over.
      isFree: rooms.every(({ isFree }) => isFree),
    });
  };
