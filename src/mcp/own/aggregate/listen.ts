import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientAnswer } from '#http';
import { createEventReader } from '#wire';
import { errorText, parseMessage, type RequestMessage } from '#json-rpc';
import { signalOf } from '#billing/amounts';
import type { StreamQuota } from '#limits';
import { ownerOf } from '#tasks';
import type { ToolCatalogue, ListChange } from '../../catalogue/tool-catalogue.ts';
import { withMeta } from '../../wire/meta.ts';
import { eventBytes } from '../../request/mcp-request.ts';
import { aborted, allWithin } from '../../request/waiting.ts';
import {
  notificationText,
  readOwnRequest,
  requestText,
  ACKNOWLEDGED,
  acknowledgement,
  listChanged,
  listenEnd,
  readSubscribed,
  type ListKind,
} from '../../wire/own-messages.ts';
import { ERROR, META } from '../../wire/revisions.ts';
import type { RequestContext, RunStateless } from '../../call/stateless.ts';
import type { Aggregate } from './aggregate.ts';
import type { Scope } from './tables.ts';

/** Answers `subscriptions/listen` at the aggregate. Resolves when the client has left or the stream's time is over. */
export type AggregateListen = (
  message: RequestMessage,
  scope: Scope,
  context: RequestContext,
  answer: ClientAnswer,
) => Promise<void>;

interface AggregateListenOptions {
  readonly aggregate: Pick<Aggregate, 'uriOf' | 'toClient' | 'exposeUri' | 'concerns'>;
  readonly catalogue: Pick<ToolCatalogue, 'onChanged'>;
  readonly toService: RunStateless;
  readonly places: StreamQuota;
  readonly bytesMax: number;
}

/** The most time that services get to say of which resources they will report changes. */
const ACKNOWLEDGE_MS = 3_000;

/**
 * Changes of lists come from the catalogue, which gets them from all servers. Changes of resources come from the
 * servers themselves. Each server is asked by its own call, which ends with this one.
 */
export function createAggregateListen(options: AggregateListenOptions): AggregateListen {
  const { catalogue, places } = options;

  return async (message, scope, context, answer) => {
    const place = places.take(ownerOf(context.caller));
    if (place === null) {
      const { status, message: why } = places.refusal();
      return answer.end(errorText(message.idText, { code: ERROR.server, message: why }), status);
    }
    const stop = AbortSignal.any([place.over, signalOf(context.gone)]);
    let forget = () => {};
    try {
      const tell = (text: string) =>
        answer.events(eventBytes(withMeta(text, 'params', { [META.subscriptionId]: message.idText })));
      const { kinds, uris } = readSubscribed(message.params);
      const news = createChangeNews(
        (change) => options.aggregate.concerns(change, scope),
        async (kind) => {
          if (kinds.includes(kind)) await tell(notificationText(listChanged(kind)));
        },
      );
      forget = catalogue.onChanged(news.changed);
      const resources = await subscribe(options, uris, scope, { message, context, tell, stop });
      await tell(acknowledgement({ kinds, uris: resources }));
      news.begin();
      await aborted(stop);
      answer.end(listenEnd(message.idText), 200);
    } finally {
      forget();
      place.leave();
    }
  };
}

interface ListenRequest {
  readonly message: RequestMessage;
  readonly context: RequestContext;
  readonly tell: (text: string) => Promise<void>;
  readonly stop: AbortSignal;
}

/**
 * Asks the services of these resources to report changes. Resolves to the resources that they accepted, once all
 * services have answered or ACKNOWLEDGE_MS is over.
 */
async function subscribe(
  options: AggregateListenOptions,
  uris: readonly string[],
  scope: Scope,
  listener: ListenRequest,
): Promise<readonly string[]> {
  const located = uris.flatMap((uri) => options.aggregate.uriOf(uri, scope) ?? []);
  const honoured: string[] = [];
  const acknowledged = [...Map.groupBy(located, ({ service }) => service)].map(async ([service, resources]) => {
    const requestedUris = resources.map(({ uri }) => uri);
    const acceptedUris = await subscribeAt(options, service, requestedUris, listener);
    honoured.push(...acceptedUris.map((uri) => options.aggregate.exposeUri(service, uri)));
  });
  await allWithin(ACKNOWLEDGE_MS, acknowledged);
  return honoured;
}

/**
 * Listens at one service until `listener.stop` aborts, and again if the service ends its stream. Resolves to the URIs
 * that the service acknowledged; to an empty list if it refuses.
 */
function subscribeAt(
  options: AggregateListenOptions,
  service: string,
  uris: readonly string[],
  listener: ListenRequest,
): Promise<readonly string[]> {
  const first = Promise.withResolvers<readonly string[]>();
  let tried = false;
  const listening = keepListening(listener.stop, async (onHeard) => {
    // A service that accepts no URI at first accepts none later.
    let accepted: readonly string[] | null = tried ? null : [];
    tried = true;
    await listenAt(options, service, uris, listener, (acknowledged) => {
      accepted = acknowledged;
      first.resolve(acknowledged);
      onHeard();
    });
    return accepted === null || accepted.length > 0;
  });
  const none = () => first.resolve([]);
  // This may reject, for example if no service accepts a header of the request.
  listening.then(none, none);
  return first.promise;
}

/** Listens at one service. Resolves when the stream is over, whatever the reason. */
async function listenAt(
  { toService, aggregate, bytesMax }: AggregateListenOptions,
  service: string,
  uris: readonly string[],
  { message, context, tell, stop }: ListenRequest,
  onAcknowledged: (uris: readonly string[]) => void,
): Promise<void> {
  const params = { notifications: { resourceSubscriptions: uris }, _meta: message.params?.['_meta'] };
  const request = readOwnRequest(requestText(`listen-${service}`, 'subscriptions/listen', params));
  const reader = createEventReader({ bytesMax });
  const within: ClientAnswer = {
    async events(bytes) {
      for (const { data } of reader.push(bytes)) {
        const news = data === '' ? null : parseMessage(data);
        if (news?.kind !== 'notification') continue;
        if (news.method === ACKNOWLEDGED) onAcknowledged(readSubscribed(news.params).uris);
        else if (news.method === 'notifications/resources/updated') await tell(data);
      }
    },
    end: () => {},
    body: () => null,
    close: () => {},
  };
  const stateless = { client: 'modern', message: request, capabilities: {}, events: true } as const;
  await toService(service, stateless, { ...context, gone: stop }, within, (text) => aggregate.toClient(text, service));
}

/** The pause before a stream that its server ended is opened again. It doubles with each failure. */
const RETRY_MS = 1_000;
const RETRY_MS_MAX = 120_000;

type Pause = (ms: number, signal: AbortSignal) => Promise<void>;

const untilAborted: Pause = (ms, signal) => sleep(ms, undefined, { signal }).catch(() => {});

/**
 * Listens to a server until `signal` aborts, and again if the server ends its stream. It does not give up, because a
 * server that was away asks its questions to clients on this stream. `listen` calls `onHeard` once the server has sent
 * something, and resolves to whether to listen again.
 */
export async function keepListening(
  signal: AbortSignal,
  listen: (onHeard: () => void) => Promise<boolean>,
  pause: Pause = untilAborted,
): Promise<void> {
  for (let failures = 0; !signal.aborted; failures++) {
    const onHeard = () => {
      failures = 0;
    };
    if (!(await listen(onHeard))) return;
    await pause(Math.min(RETRY_MS * 2 ** failures, RETRY_MS_MAX), signal);
  }
}

/** Notifications of changed lists for one client. Each names only the kind of list. */
interface ChangeNews {
  changed(change: ListChange): void;
  /** Begins to notify the client, first of the changes until now. */
  begin(): void;
}

/** Changes of a kind that come while the client reads are merged into one notification. `tell` must not reject. */
export function createChangeNews(
  concerns: (change: ListChange) => boolean,
  tell: (kind: ListKind) => Promise<void>,
): ChangeNews {
  const due = new Set<ListKind>();
  let waits = true;

  async function tellDue(): Promise<void> {
    if (waits) return;
    waits = true;
    for (const kind of due) {
      due.delete(kind);
      await tell(kind);
    }
    waits = false;
  }

  return {
    changed(change) {
      if (!concerns(change)) return;
      for (const kind of change.kinds) due.add(kind);
      void tellDue();
    },
    begin() {
      waits = false;
      void tellDue();
    },
  };
}
