import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Answer,
  createEventReader,
  errorText,
  eventText,
  isObject,
  type JsonObject,
  parseMessage,
  type RequestMessage,
  resultText,
} from '#wire';
import type { ListenPlaces } from '#gateway';
import type { Kind } from '../../catalogue/listing.ts';
import type { ToolCatalogue } from '../../catalogue/tool-catalogue.ts';
import { withMeta } from '../../wire/meta.ts';
import { ERROR, META } from '../../wire/revisions.ts';
import type { Knock, StandaloneRun } from '../../call/standalone.ts';
import type { Aggregate } from './aggregate.ts';
import { createChangeNews, listChanged } from './change-news.ts';
import type { Scope } from './scope.ts';

/** `subscriptions/listen` of a client of the aggregate. Resolves when the client left, or the stream's time is over. */
export type AggregateListen = (message: RequestMessage, scope: Scope, knock: Knock, answer: Answer) => Promise<void>;

export interface AggregateListenOptions {
  readonly aggregate: Pick<Aggregate, 'uriOf' | 'toClient' | 'exposeUri'>;
  readonly catalogue: Pick<ToolCatalogue, 'onChanged'>;
  readonly toService: StandaloneRun;
  readonly places: ListenPlaces;
  /** Longest event. */
  readonly bytesMax: number;
}

/** The client's words for the lists that it wants to hear of. */
const CHANGES = {
  tools: 'toolsListChanged',
  prompts: 'promptsListChanged',
  resources: 'resourcesListChanged',
} as const satisfies Record<Kind, string>;

/** For the services to say which of their resources they will tell of. */
const ACKNOWLEDGE_MS = 3_000;
/** Before a service is asked again that ended its stream. */
const RETRY_MS = 1_000;
const RETRY_MS_MAX = 30_000;
const FAILURES_MAX = 8;
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

/**
 * Changes of lists come from the catalogue, which hears of them from all servers; those of resources from the
 * servers themselves, each asked by a call of its own that ends with this one.
 */
export function createAggregateListen(options: AggregateListenOptions): AggregateListen {
  const { catalogue, places } = options;

  return async (message, scope, knock, answer) => {
    const place = places.take(knock.caller.account);
    if (place === null) {
      const { status, message: why } = places.refusal();
      return answer.end(errorText(message.idText, { code: ERROR.server, message: why }), status);
    }
    const stop = AbortSignal.any([place.over, knock.gone]);
    let forget = () => {};
    try {
      const tell = (text: string) =>
        answer.events(Buffer.from(eventText(withMeta(text, 'params', { [META.subscriptionId]: message.idText }))));
      const wanted = isObject(message.params?.['notifications']) ? message.params['notifications'] : {};
      const lists = Object.values(CHANGES).filter((key) => wanted[key] === true);
      const news = createChangeNews(scope.includes, async (kind) => {
        if (wanted[CHANGES[kind]] === true) await tell(listChanged(kind));
      });
      forget = catalogue.onChanged(news.changed);
      const resources = await subscribe(options, urisOf(wanted), scope, { message, knock, tell, stop });
      const agreed = {
        ...Object.fromEntries(lists.map((key) => [key, true])),
        ...(resources.length > 0 ? { resourceSubscriptions: resources } : {}),
      };
      await tell(JSON.stringify({ jsonrpc: '2.0', method: ACKNOWLEDGED, params: { notifications: agreed } }));
      news.begin();
      await aborted(stop);
      answer.end(
        resultText(
          message.idText,
          `{"resultType":"complete","_meta":{${JSON.stringify(META.subscriptionId)}:${message.idText}}}`,
        ),
        200,
      );
    } finally {
      forget();
      place.leave();
    }
  };
}

const RESOURCES_MAX = 1_000;

const urisOf = ({ resourceSubscriptions: uris }: JsonObject): readonly string[] =>
  Array.isArray(uris)
    ? [...new Set(uris.filter((uri): uri is string => typeof uri === 'string'))].slice(0, RESOURCES_MAX)
    : [];

interface Listener {
  readonly message: RequestMessage;
  readonly knock: Knock;
  readonly tell: (text: string) => Promise<void>;
  /** Aborts when the stream is over. */
  readonly stop: AbortSignal;
}

/**
 * Asks the services of these resources to tell of them. Gives those that they will tell of, once all have said so
 * or some time is over.
 */
async function subscribe(
  options: AggregateListenOptions,
  uris: readonly string[],
  scope: Scope,
  listener: Listener,
): Promise<readonly string[]> {
  const located = uris.flatMap((uri) => options.aggregate.uriOf(uri, scope) ?? []);
  const honoured: string[] = [];
  const acknowledged = [...Map.groupBy(located, ({ service }) => service)].map(async ([service, of]) => {
    const taken = await subscribeAt(
      options,
      service,
      of.map(({ uri }) => uri),
      listener,
    );
    honoured.push(...taken.map((uri) => options.aggregate.exposeUri(service, uri)));
  });
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, ACKNOWLEDGE_MS);
  await Promise.race([Promise.all(acknowledged), late.promise]);
  clearTimeout(timer);
  return honoured;
}

/**
 * Listens at one service until the stream is over, again where the service ends its own. Resolves with the URIs
 * that it acknowledged, none where it refuses.
 */
function subscribeAt(
  options: AggregateListenOptions,
  service: string,
  uris: readonly string[],
  listener: Listener,
): Promise<readonly string[]> {
  const { stop: signal } = listener;
  const first = Promise.withResolvers<readonly string[]>();
  const hear = async () => {
    for (let failures = 0; failures < FAILURES_MAX && !signal.aborted; failures++) {
      let taken: readonly string[] = [];
      await listenAt(options, service, uris, listener, (acknowledged) => {
        taken = acknowledged;
        first.resolve(acknowledged);
        failures = 0;
      });
      // What it does not have at first it does not have later.
      if (failures === 0 && taken.length === 0) break;
      await sleep(Math.min(RETRY_MS * 2 ** failures, RETRY_MS_MAX), undefined, { signal }).catch(() => {});
    }
  };
  // A header of the request may be one that no service takes.
  hear().then(
    () => first.resolve([]),
    () => first.resolve([]),
  );
  return first.promise;
}

/** Listens at one service. Resolves when that is over, however it ends. */
async function listenAt(
  { toService, aggregate, bytesMax }: AggregateListenOptions,
  service: string,
  uris: readonly string[],
  { message, knock, tell, stop }: Listener,
  onAcknowledged: (uris: readonly string[]) => void,
): Promise<void> {
  const params = { notifications: { resourceSubscriptions: uris }, _meta: message.params?.['_meta'] };
  const request = parseMessage(
    JSON.stringify({ jsonrpc: '2.0', id: `listen-${service}`, method: 'subscriptions/listen', params }),
  );
  if (request?.kind !== 'request') throw new Error('a request of the gateway is a request');
  const reader = createEventReader({ bytesMax });
  const within: Answer = {
    async events(bytes) {
      for (const { data } of reader.push(bytes)) {
        const news = data === '' ? null : parseMessage(data);
        if (news?.kind !== 'notification') continue;
        if (news.method === ACKNOWLEDGED)
          onAcknowledged(urisOf(isObject(news.params?.['notifications']) ? news.params['notifications'] : {}));
        else if (news.method === 'notifications/resources/updated') await tell(data);
      }
    },
    end: () => {},
    close: () => {},
  };
  const standalone = { client: 'modern', message: request, capabilities: {}, events: true } as const;
  await toService(service, standalone, { ...knock, gone: stop }, within, (text) => aggregate.toClient(text, service));
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
