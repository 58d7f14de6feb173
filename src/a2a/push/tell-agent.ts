import {
  endOnly,
  OWN_ACCOUNT,
  pinned,
  runFree,
  type Catalog,
  type Offer,
  type Pipeline,
  type ReplyEnd,
  type Send,
} from '#gateway';
import type { Task, TaskOwner } from '#tasks';
import { readAgent } from '../agent/agent-reply.ts';
import { agentRequest } from '../agent/agent-request.ts';
import type { Cards } from '../cards/card-cache.ts';
import { chooseLink } from '../agent/resolve.ts';
import { versionIn } from '../tasks/agent-tasks.ts';
import { writePushConfig } from '../wire/push-config.ts';

interface TellAgentDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly catalog: Pick<Catalog, 'offers'>;
  readonly cards: Pick<Cards, 'facts'>;
  readonly ownWebhook: (offer: Offer, owner: TaskOwner, taskId: string | null) => string | null;
}

const FREE: ReplyEnd = { usage: null, outcome: 'free', estimated: false, finishReason: null, flags: [], tail: null };
/** Short, because the answer to the client waits for this request. */
const TELL_MS = 2_000;
const REPLY_BYTES_MAX = 64 * 1024;

/**
 * Asks an agent to notify the gateway of a task, so that the client learns of changes before the gateway's next poll.
 * Nothing depends on it: if the agent does not notify, the looks go on.
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
  const tell = async (send: Send): Promise<ReplyEnd> => {
    const asked = {
      operation: 'push-set',
      version: link.version,
      params,
      paramsText: JSON.stringify(params),
      id: requestId,
      requestId,
    } as const;
    const reply = await send(agentRequest(link, { ...asked, extensions: null, run: null })).head;
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
