import { GatewayError } from '#errors';
import { outboundUrlFault } from '#security';
import type { TaskKey, TaskOwner } from '#tasks';
import { signingKeyOf, type Webhooks } from '#webhooks';
import type { Batch } from '#batch-jobs';

export interface BatchCallbacks {
  keyOf(owner: TaskOwner): string;
  /** The key that signs the message of a batch that is there already. One of an earlier version keeps that of then. */
  keyOfMade(batch: Named): Promise<string>;
  /** Stores the address of a new batch. Rejects with GatewayError if it may not be called, or if there are too many. */
  note(batch: Named, url: string): Promise<void>;
  /** Removes the address of a batch that was not created. */
  forget(batch: Named): Promise<void>;
  /** Queues the message of a batch that has ended, once. */
  tell(batch: Batch): Promise<void>;
}

type Named = Pick<Batch, 'id' | 'account' | 'within' | 'request'>;

interface BatchCallbacksOptions {
  readonly webhooks: Pick<Webhooks, 'set' | 'list' | 'delete' | 'deliver'>;
  /** 32 bytes that all gateways of one database share. */
  readonly secret: Uint8Array;
  /** Addresses of private networks may be called. */
  readonly allowPrivate: boolean;
}

const FORM = 'batch';
const MS = 1_000;

/** Of two requests that come at once with one idempotency key, the one that is refused removes its own address. */
const nameOf = ({ request }: Named): string => request ?? 'callback';

const keyOfBatch = ({ id }: Pick<Batch, 'id'>): TaskKey => ({ primitive: 'model', service: 'batches', taskId: id });

export function createBatchCallbacks({ webhooks, secret, allowPrivate }: BatchCallbacksOptions): BatchCallbacks {
  const keyOf = (owner: TaskOwner) => signingKeyOf(secret, owner, 'base64');
  return {
    keyOf,
    async keyOfMade(batch) {
      const noted = await webhooks.list(keyOfBatch(batch), batch);
      return noted.find(({ name }) => name === nameOf(batch))?.signingKey ?? keyOf(batch);
    },
    async note(batch, url) {
      const wrong = outboundUrlFault(url, { allowPrivate });
      if (wrong !== null) throw new GatewayError('invalid_request', `callback_url ${wrong}`, { param: 'callback_url' });
      const webhook = {
        name: nameOf(batch),
        form: FORM,
        url,
        headers: {},
        signingKey: keyOf(batch),
        notes: '{}',
      };
      if (!(await webhooks.set(keyOfBatch(batch), batch, webhook)))
        throw new GatewayError('rate_limit_exceeded', 'This account has reached its maximum number of callbacks', {
          param: 'callback_url',
        });
    },
    async forget(batch) {
      await webhooks.delete(keyOfBatch(batch), batch, nameOf(batch));
    },
    async tell(batch) {
      const { id, status, endedAt } = batch;
      const identity = `${id}-${status}`;
      await webhooks.deliver(keyOfBatch(batch), {
        identity,
        isLast: true,
        contentOf: (form) =>
          form === FORM
            ? {
                contentType: 'application/json',
                // The members of OpenAI's webhooks.
                body: JSON.stringify({
                  id: identity,
                  object: 'event',
                  created_at: Math.floor((endedAt ?? 0) / MS),
                  type: `batch.${status}`,
                  data: { id },
                }),
              }
            : null,
      });
    },
  };
}
