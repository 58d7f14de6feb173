import { endOnly, type FreeCall, type Pipeline, runFree, type Send, type UpstreamRequest } from '#call';
import { OWN_ACCOUNT } from '#accounts';
import { pinned } from '#catalog';
import type { Task } from '#tasks';
import { retryAfterOf } from '#wire';
import { BOUNDS, checkHead, parseReplyJson, toFailure, tooLarge } from '#wire/replies';

interface ProviderAsk {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly task: Pick<Task, 'offerId' | 'taskId'>;
  readonly method: 'video/retrieve' | 'video/content' | 'video/cancel';
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

const OWN_CALLER = { account: OWN_ACCOUNT, key: null, wallet: null } as const;
const FREE = { usage: null, outcome: 'free', estimated: false, finishReason: null, flags: [] } as const;

/**
 * Sends requests of the gateway itself to the provider of a task, which cost nothing. `talk` sends them under the
 * request id that it gets. Rejects with errors of `talk`, and with GatewayError if the provider cannot be asked.
 */
export async function askProvider<T>(
  { pipeline, task, method, timeoutMs, signal }: ProviderAsk,
  talk: (send: Send, requestId: string) => Promise<T>,
): Promise<T> {
  const requestId = `video-${task.taskId}`;
  const call: FreeCall<{ readonly value: T }, never> = {
    primitive: 'video',
    caller: OWN_CALLER,
    requestId,
    target: pinned(task.offerId),
    method,
    startAttempt: (_offer, send) => endOnly(async () => ({ ...FREE, result: { value: await talk(send, requestId) } })),
    timeoutMs,
  };
  const answered = await runFree(pipeline, call, signal);
  if (answered === null) throw new Error('the request to the provider was not completed');
  return answered.value;
}

const BYTES_MAX = BOUNDS.video.bytesMax;

/**
 * Sends a request and reads the small JSON answer; null for an answer without a body. Rejects with UpstreamFailure,
 * also for an error status.
 */
export async function askForJson(send: Send, request: UpstreamRequest): Promise<unknown> {
  const exchange = send(request);
  const reply = await exchange.head;
  checkHead(reply.status, reply.headers);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for (let arrived = await reply.read(); arrived !== null; arrived = await reply.read()) {
    chunks.push(...arrived);
    for (const chunk of arrived) bytes += chunk.byteLength;
    if (bytes > BYTES_MAX) throw tooLarge(`its reply is larger than ${BYTES_MAX} bytes`);
  }
  reply.discard();
  const body = Buffer.concat(chunks);
  if (reply.status >= 400) {
    const words = Buffer.from(reply.scrub(body.toString('utf8')));
    throw toFailure(reply.status, words, retryAfterOf(reply.headers['retry-after']));
  }
  if (body.byteLength === 0) return null;
  return parseReplyJson(body, BOUNDS.video);
}
