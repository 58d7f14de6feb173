import type { Answer } from '../answer.ts';
import type { Kind } from '../catalogue/listing.ts';
import type { ToolCatalogue } from '../catalogue/tool-catalogue.ts';
import { createEventReader, eventText } from '../event-reader.ts';
import { errorText, isObject, parseMessage, resultText, type JsonObject, type RequestMessage } from '../message.ts';
import { withMeta } from '../meta.ts';
import { ERROR, META } from '../revisions.ts';
import type { Knock, StandaloneRun } from '../standalone.ts';
import type { Aggregate } from './aggregate.ts';
import type { Scope } from './scope.ts';

/** `subscriptions/listen` of a client of the aggregate. Resolves when the client left, or the stream's time is over. */
export type AggregateListen = (message: RequestMessage, scope: Scope, knock: Knock, answer: Answer) => Promise<void>;

export interface AggregateListens {
  readonly listen: AggregateListen;
  readonly count: number;
  /** Ends all streams, as the gateway stops. */
  drain(): void;
}

export interface AggregateListensOptions {
  readonly aggregate: Pick<Aggregate, 'uriOf' | 'toClient' | 'exposeUri'>;
  readonly catalogue: Pick<ToolCatalogue, 'onChanged'>;
  readonly toService: StandaloneRun;
  /** Streams of one account. */
  readonly max: number;
  /** Longest event. */
  readonly bytesMax: number;
  readonly lastsMs?: number;
}

/** The client's word for a list, and what it is told when that changes. */
const CHANGES = {
  tools: ['toolsListChanged', 'notifications/tools/list_changed'],
  prompts: ['promptsListChanged', 'notifications/prompts/list_changed'],
  resources: ['resourcesListChanged', 'notifications/resources/list_changed'],
} as const satisfies Record<Kind, readonly [string, string]>;

/** For the services to say which of their resources they will tell of. */
const ACKNOWLEDGE_MS = 3_000;
const HOUR_MS = 3_600_000;
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

/**
 * Changes of lists come from the catalogue, which hears of them from all servers; those of resources from the servers themselves, each asked by a call
 * of its own that ends with this one.
 */
export function createAggregateListens(options: AggregateListensOptions): AggregateListens {
  const { catalogue, max, lastsMs = HOUR_MS } = options;
  const byAccount = new Map<string, number>();
  const open = new Set<AbortController>();
  let draining = false;

  async function listen(message: RequestMessage, scope: Scope, knock: Knock, answer: Answer): Promise<void> {
    const { account } = knock.caller;
    const others = byAccount.get(account) ?? 0;
    if (others >= max || draining) {
      const text = draining ? 'The gateway is shutting down' : `This account listens on ${max} streams, which is as many as it may`;
      return answer.end(errorText(message.idText, { code: ERROR.server, message: text }), draining ? 503 : 429);
    }
    byAccount.set(account, others + 1);
    const stop = new AbortController();
    open.add(stop);
    const timer = setTimeout(() => stop.abort(), lastsMs);
    const leave = () => stop.abort();
    knock.gone.addEventListener('abort', leave, { once: true });
    if (knock.gone.aborted) leave();
    let forget = () => {};
    try {
      const tell = (text: string) => answer.events(Buffer.from(eventText(withMeta(text, 'params', { [META.subscriptionId]: message.idText }))));
      const wanted = isObject(message.params?.['notifications']) ? message.params['notifications'] : {};
      const lists = Object.values(CHANGES).filter(([key]) => wanted[key] === true);
      const resources = await subscribe(options, urisOf(wanted), scope, { message, knock, tell, stop });
      const agreed = {
        ...Object.fromEntries(lists.map(([key]) => [key, true])),
        ...(resources.length > 0 ? { resourceSubscriptions: resources } : {}),
      };
      await tell(JSON.stringify({ jsonrpc: '2.0', method: ACKNOWLEDGED, params: { notifications: agreed } }));
      forget = catalogue.onChanged(({ service, kinds }) => {
        if (!scope.includes(service)) return;
        for (const kind of kinds) {
          const change = CHANGES[kind];
          if (lists.includes(change)) void tell(JSON.stringify({ jsonrpc: '2.0', method: change[1] }));
        }
      });
      await aborted(stop.signal);
      answer.end(resultText(message.idText, JSON.stringify({ resultType: 'complete', _meta: { [META.subscriptionId]: message.id } })), 200);
    } finally {
      forget();
      clearTimeout(timer);
      knock.gone.removeEventListener('abort', leave);
      stop.abort();
      open.delete(stop);
      const left = byAccount.get(account)! - 1;
      if (left === 0) byAccount.delete(account);
      else byAccount.set(account, left);
    }
  }

  return {
    listen,
    get count() {
      return open.size;
    },
    drain() {
      draining = true;
      for (const stop of open) stop.abort();
    },
  };
}

const RESOURCES_MAX = 1_000;

const urisOf = ({ resourceSubscriptions: uris }: JsonObject): readonly string[] =>
  Array.isArray(uris) ? [...new Set(uris.filter((uri): uri is string => typeof uri === 'string'))].slice(0, RESOURCES_MAX) : [];

interface Listener {
  readonly message: RequestMessage;
  readonly knock: Knock;
  readonly tell: (text: string) => Promise<void>;
  readonly stop: AbortController;
}

/** Asks the services of these resources to tell of them. Gives those that they will tell of, once all have said so or some time is over. */
async function subscribe(options: AggregateListensOptions, uris: readonly string[], scope: Scope, listener: Listener): Promise<readonly string[]> {
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

/** Listens at one service until the stream is over. Resolves with the URIs that it acknowledged, none where it refuses. */
function subscribeAt(
  { toService, aggregate, bytesMax }: AggregateListensOptions,
  service: string,
  uris: readonly string[],
  listener: Listener,
): Promise<readonly string[]> {
  const { message, knock, tell, stop } = listener;
  const params = { notifications: { resourceSubscriptions: uris }, _meta: message.params?.['_meta'] };
  const request = parseMessage(JSON.stringify({ jsonrpc: '2.0', id: `listen-${service}`, method: 'subscriptions/listen', params }));
  if (request?.kind !== 'request') throw new Error('a request of the gateway is a request');
  const { promise, resolve } = Promise.withResolvers<readonly string[]>();
  const reader = createEventReader({ bytesMax });
  const within: Answer = {
    async events(bytes) {
      for (const { data } of reader.push(bytes)) {
        const news = data === '' ? null : parseMessage(data);
        if (news?.kind !== 'notification') continue;
        if (news.method === ACKNOWLEDGED) resolve(urisOf(isObject(news.params?.['notifications']) ? news.params['notifications'] : {}));
        else if (news.method === 'notifications/resources/updated') await tell(data);
      }
    },
    end: () => resolve([]),
    close: () => resolve([]),
  };
  const standalone = { client: 'modern', message: request, capabilities: {}, events: true } as const;
  void toService(service, standalone, { ...knock, gone: stop.signal }, within, (text) => aggregate.toClient(text, service)).finally(() =>
    resolve([]),
  );
  return promise;
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
