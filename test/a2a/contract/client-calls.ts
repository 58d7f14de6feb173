import { readEvents, type SseEvent } from './sse.ts';
import {
  readEvent,
  readTask,
  writeMessage,
  type Binding,
  type Event,
  type Json,
  type Part,
  type Task,
  type Version,
} from './shapes.ts';
import { ERROR_REASONS } from './error-codes.ts';

/** Where a talk goes to and in which words. */
export interface Place {
  /** JSON-RPC is POSTed there, REST is below it; no slash at the end. */
  readonly url: string;
  /** Such as a key; they come with every request. */
  readonly headers: Readonly<Record<string, string>>;
}

/** An answer as it came. */
export interface Reply {
  readonly status: number;
  readonly contentType: string;
  readonly headers: Headers;
  readonly text: string;
  /** The whole body, or undefined when it is no JSON. */
  readonly json: unknown;
  /** JSON-RPC's `result`, or REST's body. Throws when it is an error. */
  result(): Json;
  /** JSON-RPC's code, or for REST the code that its ErrorInfo's reason stands for; null when it is no error. */
  readonly error: { readonly code: number | null; readonly message: string; readonly raw: Json } | null;
}

export interface Stream {
  readonly status: number;
  readonly contentType: string;
  readonly headers: Headers;
  /** The next event; null once the stream has ended. */
  next(): Promise<Event | null>;
  /** The answer, where the first event is an error; null for any other. */
  refusal(): Promise<Reply | null>;
  /** All that is left, until its end. */
  rest(): Promise<Event[]>;
  /** Every event that was read, as it stood on the wire. */
  readonly wire: readonly SseEvent[];
  /** The client hangs up. */
  leave(): void;
}

/** The operations, by either binding and in either version, without an SDK between the test and the bytes. */
export interface ProviderStream {
  readonly version: Version;
  readonly binding: Binding;
  readonly place: Place;
  /** A request of one's own making. `path` is below the place; headers replace those of the place. */
  raw(
    verb: string,
    path: string,
    body: string | null,
    headers?: Readonly<Record<string, string | null>>,
  ): Promise<Reply>;
  /** One operation by 1.0's method name. */
  call(operation: Operation, params: Json, headers?: Readonly<Record<string, string | null>>): Promise<Reply>;
  open(operation: 'SendStreamingMessage' | 'SubscribeToTask', params: Json): Promise<Reply | Stream>;
  send(parts: readonly Part[] | string, more?: SendMore): Promise<Event>;
  sent(parts: readonly Part[] | string, more?: SendMore): Promise<Reply>;
  /** Sends and expects a task. */
  task(text: string, more?: SendMore): Promise<Task>;
  stream(text: string, more?: SendMore): Promise<Stream>;
  subscribe(taskId: string): Promise<Stream>;
  get(taskId: string, historyLength?: number): Promise<Task>;
  /** Resolves with the task once it is in this state. */
  reaches(taskId: string, state: string): Promise<Task>;
}

export interface SendMore {
  /** More members of the message. */
  readonly message?: Json;
  readonly metadata?: Json;
  /** Does not wait for the task's end. */
  readonly immediately?: boolean;
  readonly historyLength?: number;
  /** Further members of the configuration. */
  readonly configuration?: Json;
}

export type Operation = keyof typeof OPERATIONS;

/** Each operation's method in 0.3 and its REST form (§5.3; 0.3 §3.5.6). */
const OPERATIONS = {
  SendMessage: { legacy: 'message/send', rest: () => ['POST', '/message:send'] },
  SendStreamingMessage: { legacy: 'message/stream', rest: () => ['POST', '/message:stream'] },
  GetTask: { legacy: 'tasks/get', rest: ({ id }: Json) => ['GET', `/tasks/${String(id)}`] },
  ListTasks: { legacy: 'tasks/list', rest: () => ['GET', '/tasks'] },
  CancelTask: { legacy: 'tasks/cancel', rest: ({ id }: Json) => ['POST', `/tasks/${String(id)}:cancel`] },
  SubscribeToTask: { legacy: 'tasks/resubscribe', rest: ({ id }: Json) => ['POST', `/tasks/${String(id)}:subscribe`] },
  CreateTaskPushNotificationConfig: {
    legacy: 'tasks/pushNotificationConfig/set',
    rest: ({ taskId }: Json) => ['POST', `/tasks/${String(taskId)}/pushNotificationConfigs`],
  },
  GetTaskPushNotificationConfig: {
    legacy: 'tasks/pushNotificationConfig/get',
    rest: ({ taskId, id }: Json) => ['GET', `/tasks/${String(taskId)}/pushNotificationConfigs/${String(id)}`],
  },
  ListTaskPushNotificationConfigs: {
    legacy: 'tasks/pushNotificationConfig/list',
    rest: ({ taskId }: Json) => ['GET', `/tasks/${String(taskId)}/pushNotificationConfigs`],
  },
  DeleteTaskPushNotificationConfig: {
    legacy: 'tasks/pushNotificationConfig/delete',
    rest: ({ taskId, id }: Json) => ['DELETE', `/tasks/${String(taskId)}/pushNotificationConfigs/${String(id)}`],
  },
  GetExtendedAgentCard: { legacy: 'agent/getAuthenticatedExtendedCard', rest: () => ['GET', '/extendedAgentCard'] },
} as const satisfies Readonly<Record<string, { legacy: string; rest: (params: Json) => readonly [string, string] }>>;

const IN_PATH = new Set(['id', 'taskId']);

export function createTalk(place: Place, version: Version, binding: Binding): ProviderStream {
  const ask = (
    verb: string,
    path: string,
    body: string | null,
    headers: Readonly<Record<string, string | null>> = {},
  ) => {
    const all: Record<string, string | null> = {
      ...place.headers,
      ...(body === null ? {} : { 'content-type': binding === 'JSONRPC' ? 'application/json' : 'application/a2a+json' }),
      ...(version === '1.0' ? { 'a2a-version': '1.0' } : {}),
      ...headers,
    };
    const sent = Object.fromEntries(
      Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== null),
    );
    return fetch(`${place.url}${path}`, { method: verb, headers: sent, ...(body === null ? {} : { body }) });
  };
  const begin = (operation: Operation, params: Json, headers?: Readonly<Record<string, string | null>>) => {
    const { legacy, rest } = OPERATIONS[operation];
    if (binding === 'JSONRPC') {
      const request = {
        jsonrpc: '2.0',
        id: crypto.randomUUID(),
        method: version === '1.0' ? operation : legacy,
        params,
      };
      return ask('POST', '/', JSON.stringify(request), headers);
    }
    const [verb, path] = rest(params);
    const others = Object.entries(params).filter(
      ([name]) => !IN_PATH.has(name) || operation === 'CreateTaskPushNotificationConfig',
    );
    if (verb === 'POST') {
      const bare = operation === 'CancelTask' || operation === 'SubscribeToTask';
      return ask(verb, path, bare ? null : JSON.stringify(params), headers);
    }
    const query = new URLSearchParams(others.map(([name, value]) => [name, String(value)])).toString();
    return ask(verb, query === '' ? path : `${path}?${query}`, null, headers);
  };
  const sendParams = (parts: readonly Part[] | string, more: SendMore): Json => {
    const { immediately, historyLength } = more;
    const waiting = version === '1.0' ? { returnImmediately: immediately } : { blocking: immediately !== true };
    return {
      message: writeMessage(version, parts, more.message),
      configuration: { ...waiting, historyLength, ...more.configuration },
      ...(more.metadata ? { metadata: more.metadata } : {}),
    };
  };
  const streamOf = async (operation: 'SendStreamingMessage' | 'SubscribeToTask', params: Json) => {
    const opened = await talk.open(operation, params);
    if (!('next' in opened)) throw new Error(`no stream came but ${opened.status} ${opened.text}`);
    return opened;
  };

  const talk: ProviderStream = {
    version,
    binding,
    place,
    raw: async (...request) => readReply(await ask(...request), binding),
    call: async (...request) => readReply(await begin(...request), binding),
    async open(operation, params) {
      const response = await begin(operation, params);
      const isStream = (response.headers.get('content-type') ?? '').startsWith('text/event-stream');
      return isStream ? readStream(response, version, binding) : readReply(response, binding);
    },
    sent: (parts, more = {}) => talk.call('SendMessage', sendParams(parts, more)),
    send: async (parts, more = {}) => readEvent((await talk.sent(parts, more)).result(), version),
    async task(text, more) {
      const answer = await talk.send(text, more);
      if (answer.type !== 'task') throw new Error(`a task should have come: ${JSON.stringify(answer.raw)}`);
      return answer;
    },
    stream: (text, more = {}) => streamOf('SendStreamingMessage', sendParams(text, more)),
    subscribe: (id) => streamOf('SubscribeToTask', { id }),
    async get(id, historyLength) {
      const reply = await talk.call('GetTask', { id, ...(historyLength === undefined ? {} : { historyLength }) });
      return readTask(reply.result(), version);
    },
    async reaches(id, state) {
      const until = performance.now() + 60_000;
      for (;;) {
        const task = await talk.get(id);
        if (task.state === state) return task;
        if (performance.now() > until) throw new Error(`task ${id} is ${task.state} and not ${state}`);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
  };
  return talk;
}

async function readReply(response: Response, binding: Binding): Promise<Reply> {
  return toReply(response, binding, await response.text());
}

/** An event that is the whole of a stream: JSON-RPC of 0.3 tells of an error so. */
const onlyEvent = (text: string): string => /^(?:event: .*\n)?data: (.*)\n\n$/.exec(text)?.[1] ?? text;

function toReply(response: Response, binding: Binding, text: string): Reply {
  let json: unknown;
  try {
    json = JSON.parse(onlyEvent(text));
  } catch {
    json = undefined;
  }
  const raw = (json as { readonly error?: Json } | null | undefined)?.error;
  const error = raw ? { code: codeOf(raw, binding), message: String(raw['message']), raw } : null;
  return {
    status: response.status,
    contentType: response.headers.get('content-type') ?? '',
    headers: response.headers,
    text,
    json,
    error,
    result() {
      if (error || response.status >= 300 || json === undefined)
        throw new Error(`an error came, ${response.status}: ${text}`);
      return (binding === 'JSONRPC' ? (json as Json)['result'] : json) as Json;
    },
  };
}

function codeOf(raw: Json, binding: Binding): number | null {
  if (binding === 'JSONRPC') return Number(raw['code']);
  const details = (Array.isArray(raw['details']) ? raw['details'] : []) as readonly Json[];
  const reason = details.find((detail) => String(detail['@type']).endsWith('google.rpc.ErrorInfo'))?.['reason'];
  return ERROR_REASONS.get(String(reason)) ?? (raw['status'] === 'INVALID_ARGUMENT' ? -32602 : null);
}

function readStream(response: Response, version: Version, binding: Binding): Stream {
  const wire: SseEvent[] = [];
  const events = readEvents(response);
  const next = async () => {
    const { value, done } = await events.next();
    if (done === true) return null;
    wire.push(value);
    const json = JSON.parse(value.data) as Json;
    if (binding === 'JSONRPC' && json['error']) throw new Error(`the stream says: ${value.data}`);
    return readEvent(binding === 'JSONRPC' ? json['result'] : json, version);
  };
  return {
    status: response.status,
    contentType: response.headers.get('content-type') ?? '',
    headers: response.headers,
    wire,
    next,
    refusal: async () => {
      await next().catch(() => null);
      const [first] = wire;
      const reply = first === undefined ? null : toReply(response, binding, first.data);
      return reply?.error ? reply : null;
    },
    async rest() {
      const all: Event[] = [];
      for (let event = await next(); event; event = await next()) all.push(event);
      return all;
    },
    leave: () => void events.return(undefined),
  };
}
