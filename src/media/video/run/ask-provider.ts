import { type ProviderAdapter, endOnly, OWN_ACCOUNT, type Pipeline, pinned, runFree, type Send } from '#gateway';
import type { Task } from '#tasks';

interface Asking {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly task: Pick<Task, 'offerId' | 'taskId'>;
  /** The name of the call in logs. */
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
  { pipeline, task, method, timeoutMs, signal }: Asking,
  talk: (send: Send, requestId: string) => Promise<T>,
): Promise<T> {
  const requestId = `video-${task.taskId}`;
  let said: { readonly value: T } | null = null;
  const startAttempt: ProviderAdapter['startAttempt'] = (_offer, send) =>
    endOnly(async () => {
      said = { value: await talk(send, requestId) };
      return { ...FREE, tail: null };
    });
  const target = pinned(task.offerId);
  await runFree(
    pipeline,
    { primitive: 'video', caller: OWN_CALLER, requestId, target, method, startAttempt, timeoutMs },
    signal,
  );
  const heard = said as { readonly value: T } | null;
  if (heard === null) throw new Error('the request to the provider was not completed');
  return heard.value;
}
