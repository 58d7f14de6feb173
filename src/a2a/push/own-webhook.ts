import type { FastifyPluginAsync } from 'fastify';
import { GatewayError } from '#errors';
import { isObject, readJson, type JsonLimits } from '#wire';
import { createSealedTexts, type SealSecret } from '#security';
import { PARSED_JSON, readBytes } from '#http';
import { endOnly, runFree, type Pipeline, type ReplyEnd, type Send } from '#call';
import { OWN_ACCOUNT } from '#accounts';
import { pinned, type Catalog, type Offer } from '#catalog';
import type { TaskKey, TaskPoll, Observation, Tasks, TaskOwner, Task } from '#tasks';
import { keyOf, observationOf, versionIn } from '../protocol/agent-tasks.ts';
import { WRAPPERS, readEvent, type A2aEvent } from '../wire/events.ts';
import { ID_CHARS_MAX } from '../wire/read-send.ts';
import type { A2aVersion } from '../wire/protocol.ts';
import { type PricedByUse, bytesBehind } from '../protocol/ending.ts';
import { withoutMoney } from '../protocol/metadata.ts';
import type { Notify } from '../protocol/notifications.ts';
import { readAgent } from '../agent/agent-reply.ts';
import { agentRequest } from '../agent/agent-request.ts';
import type { Cards } from '../cards/cards.ts';
import { chooseLink } from '../agent/resolve.ts';
import { writePushConfig } from '../wire/push-config.ts';

/* The gateway's own webhook: agents notify the gateway of their tasks, so that it need not wait for its next poll. */

/** The subject of one of the gateway's own webhooks. Through it an agent can notify the gateway of nothing else. */
export interface OwnAddress extends TaskOwner {
  readonly offerId: string;
  readonly service: string;
  /** null if the webhook was sent with the message that begins the task. */
  readonly taskId: string | null;
}

/** The gateway's own webhooks for agents. They are not stored: each URL contains its subject, sealed. */
interface OwnAddresses {
  /** The URL for an agent; null if the gateway does not know its own address. */
  urlFor(address: OwnAddress): string | null;
  /** Opens the sealed part of a notification's path; null if the gateway did not make it, or if it has expired. */
  open(sealed: string): OwnAddress | null;
}

interface OwnAddressesOptions {
  /** 32 bytes, shared by all gateways of one database. */
  readonly secret: SealSecret;
  /** The public origin of this gateway, without a trailing slash; null if it is not known. */
  readonly publicUrl: string | null;
  readonly now: () => number;
}

/** Names of services cannot contain `~`, so this path hides no service. */
export const PUSH_PATH = '/a2a/~push/';

const TTL_MS = 60 * 24 * 3_600_000;
const SEALED_CHARS_MAX = 4_096;
const PURPOSE = 'a2a push';

export function createOwnAddresses({ secret, publicUrl, now }: OwnAddressesOptions): OwnAddresses {
  const texts = createSealedTexts(secret);
  return {
    urlFor({ offerId, service, taskId, account, within }) {
      if (publicUrl === null) return null;
      return (
        publicUrl +
        PUSH_PATH +
        texts.seal(PURPOSE, JSON.stringify([now() + TTL_MS, offerId, service, taskId, account, within]))
      );
    },
    open(sealed) {
      const text = sealed.length > SEALED_CHARS_MAX ? null : texts.open(PURPOSE, sealed);
      if (text === null) return null;
      const [until, offerId, service, taskId, account, within] = JSON.parse(text) as [
        number,
        string,
        string,
        string | null,
        string,
        string | null,
      ];
      return until > now() ? { offerId, service, taskId, account, within } : null;
    },
  };
}

const BODY_BYTES_MAX = 1024 * 1024;
const AT_ONCE_MAX = 32;
/** How long a poll may take. This is short, because the agent waits for the answer to its notification. */
const POLL_MS = 3_000;
/** The body of a request without one, which the parser does not get. */
const EMPTY = Buffer.alloc(0);

interface OwnWebhookOptions {
  readonly addresses: Pick<OwnAddresses, 'open'>;
  readonly limits: JsonLimits;
  readonly tasks: Pick<Tasks, 'find' | 'saw'>;
  readonly offer: (id: string) => PricedByUse | null;
  readonly poll: TaskPoll;
  readonly notify: Notify;
}

/**
 * `POST /a2a/~push/<sealed>`: agents notify the gateway of their tasks. The address is the credential, so any other
 * address is answered as unknown, and so is the task of another agent. The end of a task is stored and settled, then
 * the webhooks of its clients are notified. A repeated notification, or one after the end, changes nothing. Register
 * the route at the root.
 */
export function ownWebhookRoutes(options: OwnWebhookOptions): FastifyPluginAsync {
  const { addresses, limits, tasks, offer, poll, notify } = options;
  const running = new Map<string, number>();

  /** Handles a notification. Resolves with false if the owner of the address has no such task. */
  async function receive(address: OwnAddress, body: Buffer): Promise<boolean> {
    const value = await readJson(body, limits);
    const { version, event, key } = readNotification(address, value);
    const task = await tasks.find(key, address);
    if (task === null || task.offerId !== address.offerId) return false;
    if (!task.live) return true;
    // The price of a removed offer is not known. The task is settled when the offer is back and a poll finds the end of
    // the task.
    const own = offer(address.offerId);
    let observation: Observation | null = null;
    if (own !== null) {
      const ownBytes = own.priceCap === null ? 0 : Buffer.byteLength(JSON.stringify(value));
      const taskBytes = async () => (await poll(task, AbortSignal.timeout(POLL_MS), true))?.bytes ?? 0;
      observation = observationOf(own, event, task.output, await bytesBehind(own, event, ownBytes, taskBytes));
    }
    if (observation !== null) await tasks.saw(key, observation);
    notify(key, { version }, withoutMoney(value));
    return true;
  }

  return async (app) => {
    app.removeAllContentTypeParsers();
    // Agents send application/json, application/a2a+json, or no content type.
    app.addContentTypeParser('*', readBytes(PARSED_JSON));

    app.post<{ Params: { '*': string }; Body: Buffer | undefined }>(
      `${PUSH_PATH}*`,
      {
        bodyLimit: BODY_BYTES_MAX,
        schema: { hide: true },
        // Checked before the body is read, so that bodies of strangers are not read.
        onRequest: async (request) => {
          if (addresses.open(request.params['*']) === null) throw unknown();
        },
      },
      async (request, reply) => {
        const address = addresses.open(request.params['*']);
        if (address === null) throw unknown();
        const { offerId } = address;
        const atOnce = running.get(offerId) ?? 0;
        if (atOnce >= AT_ONCE_MAX)
          throw new GatewayError('rate_limit_exceeded', 'Too many notifications at once', { retryAfterS: 1 });
        running.set(offerId, atOnce + 1);
        try {
          if (!(await receive(address, request.body ?? EMPTY))) throw unknown();
        } finally {
          const remaining = running.get(offerId)! - 1;
          if (remaining === 0) running.delete(offerId);
          else running.set(offerId, remaining);
        }
        return reply.code(204).send();
      },
    );
  };
}

const unknown = () => new GatewayError('not_found', 'No such endpoint');

/**
 * Reads a notification of either version: 1.0 wraps the event, 0.3 sends the bare task. Throws GatewayError
 * `invalid_request` for any other body, and for another task.
 */
function readNotification(
  address: OwnAddress,
  value: unknown,
): { readonly version: A2aVersion; readonly event: A2aEvent; readonly key: TaskKey } {
  const isWrapped = isObject(value) && Object.values(WRAPPERS).some((name) => Object.hasOwn(value, name));
  const version = isWrapped ? '1.0' : '0.3';
  const event = readEvent(version, value);
  const taskId = event?.taskId ?? null;
  if (event === null || event.kind === 'message' || taskId === null || taskId.length > ID_CHARS_MAX)
    throw new GatewayError(
      'invalid_request',
      'The body must be a task or an update of one: a StreamResponse of A2A 1.0, or a Task of 0.3',
    );
  if (address.taskId !== null && address.taskId !== taskId)
    throw new GatewayError('invalid_request', 'This address receives the notifications of another task');
  return { version, event, key: keyOf(address.service, taskId) };
}

interface TellAgentDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly catalog: Pick<Catalog, 'offers'>;
  readonly cards: Pick<Cards, 'facts'>;
  readonly ownWebhook: (offer: Offer, owner: TaskOwner, taskId: string | null) => string | null;
}

const FREE: ReplyEnd<null> = {
  usage: null,
  outcome: 'free',
  estimated: false,
  finishReason: null,
  flags: [],
  result: null,
};
/** Short, because the answer to the client waits for this request. */
const TELL_MS = 2_000;
const REPLY_BYTES_MAX = 64 * 1024;

/**
 * Asks an agent to notify the gateway of a task, so that the client learns of changes before the gateway's next poll.
 * Nothing depends on it: if the agent does not notify, the polls go on.
 */
export async function tellAgent({ pipeline, catalog, cards, ownWebhook }: TellAgentDeps, task: Task): Promise<void> {
  const offer = catalog.offers('agent').find(({ id }) => id === task.offerId);
  const facts = offer && task.live ? await cards.facts(offer) : null;
  const url = offer && facts?.push === true && !facts.bare ? ownWebhook(offer, task, task.taskId) : null;
  if (!offer || !facts || url === null) return;
  const link = chooseLink(offer, facts, versionIn(task.notes) ?? '1.0');
  const params = writePushConfig(link.version, {
    id: 'tollgate',
    taskId: task.taskId,
    url,
    token: null,
    authentication: null,
  });
  const requestId = `tell-${task.taskId.slice(0, 64)}`;
  const tell = async (send: Send): Promise<ReplyEnd<null>> => {
    const request = { operation: 'push-set', version: link.version, params, id: requestId, requestId } as const;
    const reply = await send(agentRequest(link, request)).head;
    for await (const _said of readAgent(link, requestId, reply, REPLY_BYTES_MAX)) break;
    return FREE;
  };
  await runFree(
    pipeline,
    {
      primitive: 'agent',
      caller: { account: OWN_ACCOUNT, key: null, wallet: null },
      requestId,
      target: pinned(offer.id),
      method: 'tasks/pushNotificationConfig/set',
      timeoutMs: TELL_MS,
      startAttempt: (_offer, send) => endOnly(() => tell(send)),
    },
    new AbortController().signal,
  );
}
