import { GatewayError } from '#errors';
import type { Task, TaskKey, TaskOwner } from '#tasks';
import { signingKeyOf, type Webhooks } from '#webhooks';
import { toVideoId, type VideoResult } from '../video-task.ts';

export interface Callbacks {
  /** The key that signs the messages of an owner's videos. */
  keyOf(owner: TaskOwner): string;
  /** Stores the address that is told of the end of a task. Rejects with GatewayError if the account has too many. */
  note(key: TaskKey, owner: TaskOwner, url: string): Promise<void>;
  /** Removes the address of a task that did not begin. Otherwise it would count for the limit of its account. */
  forget(key: TaskKey, owner: TaskOwner): Promise<void>;
  /** Queues the message. The same end is sent only once. */
  tell(task: Task, result: VideoResult): Promise<void>;
}

const FORM = 'video';
const NAME = 'callback';

/** `secret`: 32 bytes that all gateways of one database share. */
export function createCallbacks(
  webhooks: Pick<Webhooks, 'set' | 'has' | 'delete' | 'deliver'>,
  secret: Uint8Array,
): Callbacks {
  const keyOf = (owner: TaskOwner) => signingKeyOf(secret, owner, 'base64url');
  return {
    keyOf,
    async note(key, owner, url) {
      const isNoted = await webhooks.set(key, owner, {
        name: NAME,
        form: FORM,
        url,
        headers: {},
        signingKey: keyOf(owner),
        notes: '{}',
      });
      if (!isNoted)
        throw new GatewayError('rate_limit_exceeded', 'This account has reached its maximum number of callbacks', {
          param: 'callback_url',
        });
    },
    async forget(key, owner) {
      await webhooks.delete(key, owner, NAME);
    },
    async tell(task, { files, error }) {
      if (!(await webhooks.has(task))) return;
      const id = toVideoId(task);
      const status = files.length > 0 ? 'completed' : 'failed';
      const data = { id, status, ...(files.length > 0 ? { variants: files.length } : { error }) };
      const body = JSON.stringify({ id: `${task.taskId}-${status}`, type: `video.generation.${status}`, data });
      await webhooks.deliver(task, {
        identity: `${task.taskId}-${status}`,
        isLast: true,
        contentOf: (form) => (form === FORM ? { contentType: 'application/json', body } : null),
      });
    },
  };
}
