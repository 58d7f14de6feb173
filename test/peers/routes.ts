import { randomUUID } from 'node:crypto';
import { KINDS_OF_MODELS } from '#config/model-kinds';
import { SMALLEST_PNG } from './peer-provider.ts';
import { requestOf, type TestedWire, WIRES } from './wires.ts';

/** How a call is made, the same for every route. */
export interface PeerCall {
  readonly origin: string;
  readonly key: string;
  readonly text: string;
  /** A second call with the same one is the same call. */
  readonly once?: string;
  readonly receipt?: boolean;
  readonly signal?: AbortSignal;
}

export interface PeerOutcome {
  /** `refused`: before anything was sent to the provider, for want of money, rights or patience. */
  readonly kind: 'answered' | 'failed' | 'refused';
  /** Of the generation, where the reply tells it. */
  readonly id: string | null;
  /** Compact JWS. */
  readonly receipt: string | null;
  /** What the provider said. */
  readonly said: string;
  readonly raw: string;
}

/** One way to a primitive: a protocol's own route, or a bridge. */
export interface PeerDoor {
  readonly name: string;
  readonly primitive: 'model' | 'tool' | 'agent' | 'image' | 'video';
  /** Default PEER. */
  readonly service?: string;
  /** Whether its answer is a task. A task that a restricted key began is for that key, and for the whole account. */
  readonly beginsTask?: true;
  call(call: PeerCall): Promise<PeerOutcome>;
}

type Json = Record<string, never>;

async function post(
  { origin, key, signal }: PeerCall,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
) {
  const response = await fetch(origin + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}`, ...headers },
    body: JSON.stringify(body),
    ...(signal ? { signal } : {}),
  });
  const raw = await response.text();
  const isWhole = response.headers.get('content-type')?.startsWith('application/json') === true;
  return { response, raw, json: (isWhole ? JSON.parse(raw) : {}) as Json };
}

const REFUSED: ReadonlySet<number> = new Set([401, 402, 403, 424, 429]);

/** A chat wire, to whatever answers to the name. A tool gets the text as its arguments. */
const wireDoor = (wire: TestedWire, name: string, primitive: PeerDoor['primitive'], model: string): PeerDoor => ({
  name,
  primitive,
  ...(primitive === 'model' ? { service: model } : {}),
  async call(call) {
    const text = primitive === 'tool' ? JSON.stringify({ text: call.text }) : call.text;
    const { path, body } = requestOf(wire, { model, ...wire.ask(text, TOKENS) });
    const { response, raw, json } = await post(call, path, body, {
      ...(call.once ? { 'idempotency-key': call.once } : {}),
      ...(call.receipt ? { 'x-receipt': '1' } : {}),
    });
    const id = response.headers.get('x-generation-id');
    if (response.status !== 200)
      return { kind: REFUSED.has(response.status) ? 'refused' : 'failed', id, receipt: null, said: '', raw };
    return { kind: 'answered', id, receipt: response.headers.get('x-receipt'), said: wire.said(json), raw };
  },
});

/** The most that a model may write. */
const TOKENS = 5_000;

/** Every way to a primitive by a chat wire. */
const doorsOf = (wire: TestedWire): readonly PeerDoor[] => [
  wireDoor(wire, wire.name, 'model', PEER),
  streamDoor(wire, `${wire.name} in a stream`, PEER),
  ...(wire.native
    ? [
        wireDoor(wire, `${wire.name} of a provider that speaks them`, 'model', NATIVE_PEER),
        streamDoor(wire, `${wire.name} in a stream of a provider that speaks them`, NATIVE_PEER),
      ]
    : []),
  wireDoor(wire, `an agent as a model of ${wire.name}`, 'agent', `a2a/${PEER}`),
  wireDoor(wire, `a tool as a model of ${wire.name}`, 'tool', `mcp/${PEER}/do`),
];

/** Five images at most, of which the provider makes as many as it is told to. */
const imagesOf = (text: string) => ({ model: PEER, prompt: text, n: 5 });

/** The same of an image that has one pixel. */
const editsOf = (text: string) => ({ ...imagesOf(text), images: [{ b64: SMALLEST_PNG }] });

/** What the images of an answer say, in what the provider made of the prompt. */
function saidOfImages(json: unknown): string {
  const { images, data } = json as Partial<Record<'images' | 'data', { revised_prompt: string }[]>>;
  return (images ?? data ?? []).map(({ revised_prompt: said }) => said).join('');
}

/** A route of images. */
function imageDoor(name: string, path: string, bodyOf: (text: string) => object = imagesOf): PeerDoor {
  return {
    name,
    primitive: 'image',
    async call(call) {
      const { response, raw, json } = await post(call, path, bodyOf(call.text), {
        ...(call.once ? { 'idempotency-key': call.once } : {}),
        ...(call.receipt ? { 'x-receipt': '1' } : {}),
      });
      const id = response.headers.get('x-generation-id');
      if (response.status !== 200)
        return { kind: REFUSED.has(response.status) ? 'refused' : 'failed', id, receipt: null, said: '', raw };
      return { kind: 'answered', id, receipt: response.headers.get('x-receipt'), said: saidOfImages(json), raw };
    },
  };
}

/** A route of videos: the call, and the file once it is here. */
function videoDoor(name: string, path: string): PeerDoor {
  return {
    name,
    primitive: 'video',
    beginsTask: true,
    async call(call) {
      const body = { model: PEER, prompt: call.text, seconds: '5' };
      const once = call.once ? { 'idempotency-key': call.once } : {};
      const { response, raw, json } = await post(call, path, body, once);
      const id = response.headers.get('x-generation-id');
      if (response.status !== 200)
        return { kind: REFUSED.has(response.status) ? 'refused' : 'failed', id, receipt: null, said: '', raw };
      const task = (json as unknown as { id: string }).id;
      const headers = { authorization: `Bearer ${call.key}`, 'content-type': 'application/json' };
      const file = await fetch(`${call.origin}/api/v1/video/retrieve`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ task_id: task, wait_for_final: true }),
        ...(call.signal ? { signal: call.signal } : {}),
      });
      const said = await file.text();
      if (!file.headers.get('content-type')?.startsWith('video/'))
        return { kind: 'failed', id, receipt: null, said, raw };
      const record = call.receipt ? await fetch(`${call.origin}/api/v1/generation?id=${id!}`, { headers }) : null;
      const { data } = ((await record?.json()) ?? { data: {} }) as { data: { receipt?: string } };
      return { kind: 'answered', id, receipt: data.receipt ?? null, said, raw };
    },
  };
}

/** MCP, to a tool of whatever server is at the address. */
function mcpDoor(
  name: string,
  primitive: PeerDoor['primitive'],
  path: string,
  tool: string,
  args: (text: string) => object,
): PeerDoor {
  return {
    name,
    primitive,
    async call(call) {
      const meta = {
        ...(call.once ? { 'tollgate/idempotency-key': call.once } : {}),
        ...(call.receipt ? { 'tollgate/receipt': true } : {}),
      };
      const params = {
        name: tool,
        arguments: args(call.text),
        ...(Object.keys(meta).length === 0 ? {} : { _meta: meta }),
      };
      const { response, raw, json } = await post(call, path, { jsonrpc: '2.0', id: 1, method: 'tools/call', params });
      return toolOutcome(json, raw, response.status);
    },
  };
}

/** What a reply says of the money, in the same words on every wire that has a place for metadata. */
function told(meta: unknown): Pick<PeerOutcome, 'id' | 'receipt'> {
  const { 'tollgate/generation': generation, 'tollgate/receipt': receipt = null } = (meta ?? {}) as {
    'tollgate/generation'?: { id: string };
    'tollgate/receipt'?: string;
  };
  return { id: generation?.id ?? null, receipt };
}

function toolOutcome(json: unknown, raw: string, status: number): PeerOutcome {
  const { result, error } = json as {
    result?: { isError?: boolean; content: { text: string }[]; structuredContent?: object; _meta?: unknown };
    error?: { code: number };
  };
  if (!result)
    return {
      kind: REFUSED.has(status) || error?.code === -32016 ? 'refused' : 'failed',
      id: null,
      receipt: null,
      said: '',
      raw,
    };
  const { id, receipt } = told(result._meta);
  const said = result.content.map(({ text }) => text).join('');
  if (result.isError)
    return {
      kind: result.structuredContent && 'x402Version' in result.structuredContent ? 'refused' : 'failed',
      id,
      receipt,
      said,
      raw,
    };
  return { kind: 'answered', id, receipt, said, raw };
}

const message = (call: PeerCall) => ({
  message: {
    kind: 'message',
    messageId: call.once ?? randomUUID(),
    role: 'user',
    parts: [{ kind: 'text', text: call.text }],
  },
});

/** A2A 0.3, to whatever is called as an agent. */
function a2aDoor(name: string, primitive: PeerDoor['primitive'], service: string): PeerDoor {
  return {
    name,
    primitive,
    beginsTask: true,
    async call(call) {
      const text = primitive === 'tool' ? JSON.stringify({ text: call.text }) : call.text;
      const { response, raw, json } = await post(
        call,
        `/a2a/${service}`,
        { jsonrpc: '2.0', id: 1, method: 'message/send', params: message({ ...call, text }) },
        call.receipt ? { 'x-receipt': '1' } : {},
      );
      return agentOutcome(json, raw, response.status);
    },
  };
}

function agentOutcome(json: unknown, raw: string, status: number): PeerOutcome {
  const { result, error } = json as {
    result?: { kind: string; status?: { state: string }; parts?: { text: string }[]; metadata?: unknown };
    error?: { code: number };
  };
  if (!result)
    return {
      kind: REFUSED.has(status) || error?.code === -32016 ? 'refused' : 'failed',
      id: null,
      receipt: null,
      said: '',
      raw,
    };
  if (result.status?.state === 'input-required') return { kind: 'refused', id: null, receipt: null, said: '', raw };
  const { id, receipt } = told(result.metadata);
  return { kind: 'answered', id, receipt, said: (result.parts ?? []).map(({ text }) => text).join(''), raw };
}

/** The JSON-RPC route, to the route of a protocol. */
function rpcDoor(
  name: string,
  primitive: PeerDoor['primitive'],
  method: string,
  params: (call: PeerCall) => object,
): PeerDoor {
  return {
    name,
    primitive,
    async call(call) {
      const meta = {
        ...(call.once ? { 'tollgate/idempotency-key': call.once } : {}),
        ...(call.receipt ? { 'tollgate/receipt': true } : {}),
      };
      const body = {
        jsonrpc: '2.0',
        id: 1,
        method,
        params: { ...params(call), ...(Object.keys(meta).length === 0 ? {} : { _meta: meta }) },
      };
      const { response, raw, json } = await post(call, '/api/v1/rpc', body);
      const { result, error } = json as unknown as { result?: Record<string, unknown>; error?: { code: number } };
      if (!result) {
        const refused =
          REFUSED.has(response.status) ||
          (error !== undefined && [-32010, -32011, -32012, -32016].includes(error.code));
        return { kind: refused ? 'refused' : 'failed', id: null, receipt: null, said: '', raw };
      }
      if (primitive === 'tool') return toolOutcome(json, raw, response.status);
      if (primitive === 'agent') return agentOutcome(json, raw, response.status);
      const { id, receipt } = told(result['_meta']);
      if (primitive === 'image') return { kind: 'answered', id, receipt, said: saidOfImages(result), raw };
      const { choices } = result as { choices: { message: { content: string } }[] };
      return { kind: 'answered', id, receipt, said: choices[0]!.message.content, raw };
    },
  };
}

/** A model by a chat wire, in a stream of events or of lines. */
const streamDoor = (wire: TestedWire, name: string, model: string): PeerDoor => ({
  name,
  primitive: 'model',
  service: model,
  async call(call) {
    const { path, body } = requestOf(wire, { model, ...wire.ask(call.text, TOKENS), stream: true });
    const { response, raw } = await post(call, path, body, {
      ...(call.once ? { 'idempotency-key': call.once } : {}),
      ...(call.receipt ? { 'x-receipt': '1' } : {}),
    });
    const id = response.headers.get('x-generation-id');
    if (response.status !== 200)
      return { kind: REFUSED.has(response.status) ? 'refused' : 'failed', id, receipt: null, said: '', raw };
    // White space is what keeps an array alive before its first element: under load it comes first.
    const lines = raw.trimStart().startsWith('[')
      ? (JSON.parse(raw) as EventJson[]).map((one) => JSON.stringify(one))
      : raw.split('\n');
    const events = lines
      .filter((line) => /^(?:data: )?\{/.test(line))
      .map((line) => JSON.parse(line.replace(/^data: /, '')) as EventJson);
    const usageOf = (event: EventJson | undefined) =>
      (event?.['usage'] ?? event?.['usageMetadata'] ?? (event?.['response'] as EventJson | undefined)?.['usage']) as
        | EventJson
        | undefined;
    const usage = usageOf(events.findLast((event) => usageOf(event)));
    const receipt = (usage?.['cost_details'] as { readonly receipt?: string } | undefined)?.receipt ?? null;
    // The last event of a reply that was cut and paid for may have an error beside its cost.
    const failed = events.some(
      (event) =>
        event['type'] === 'error' ||
        event['type'] === 'response.failed' ||
        (event['error'] !== undefined && !costs(event)),
    );
    return {
      kind: failed ? 'failed' : 'answered',
      id,
      receipt,
      said: events.map((event) => wire.saidIn(event)).join(''),
      raw,
    };
  },
});

const costs = ({ usage, usageMetadata }: EventJson): boolean =>
  ((usage ?? usageMetadata ?? {}) as { readonly cost?: number }).cost !== undefined;

type EventJson = Readonly<Record<string, unknown>>;

export const PEER = 'peer/all';
/** Its provider speaks the wires of the routes itself. */
export const NATIVE_PEER = 'peer/native';

/** The Gemini API, whose streams are arrays unless they are asked for as events. */
const GEMINI = WIRES.find(({ name }) => name === 'gemini')!;
const IN_ARRAY: TestedWire = {
  ...GEMINI,
  sent(asked) {
    const { path, body } = GEMINI.sent!(asked);
    return { path: path.replace('?alt=sse', ''), body };
  },
};

/** Only providers that speak the Responses API can compact. The model's own maximum bounds the answer. */
const RESPONSES = WIRES.find(({ name }) => name === 'responses')!;
const COMPACT: TestedWire = { ...RESPONSES, path: '/api/v1/responses/compact', ask: (text) => ({ input: text }) };

/** Every way to each primitive. */
export const ENDPOINTS: readonly PeerDoor[] = [
  ...WIRES.flatMap(doorsOf),
  streamDoor(IN_ARRAY, 'gemini in a JSON array', PEER),
  streamDoor(IN_ARRAY, 'gemini in a JSON array, of a provider that speaks it', NATIVE_PEER),
  wireDoor(COMPACT, 'a compaction', 'model', NATIVE_PEER),
  mcpDoor('MCP', 'tool', `/mcp/${PEER}`, 'do', (text) => ({ text })),
  a2aDoor('A2A', 'agent', PEER),
  rpcDoor('JSON-RPC chat/completions', 'model', 'chat/completions', ({ text }) => ({
    model: PEER,
    max_tokens: 5_000,
    messages: [{ role: 'user', content: text }],
  })),
  imageDoor('images', '/api/v1/image/generate'),
  imageDoor('images as OpenAI has them', '/api/v1/images/generations'),
  rpcDoor('JSON-RPC images/generate', 'image', 'images/generate', ({ text }) => imagesOf(text)),
  imageDoor('edits of images', '/api/v1/image/edit', editsOf),
  imageDoor('edits of images as OpenAI has them', '/api/v1/images/edits', editsOf),
  rpcDoor('JSON-RPC images/edit', 'image', 'images/edit', ({ text }) => editsOf(text)),
  videoDoor('videos', '/api/v1/video/queue'),
  videoDoor('videos as OpenAI has them', '/api/v1/videos'),
  rpcDoor('JSON-RPC tools/call', 'tool', 'tools/call', ({ text }) => ({
    service: PEER,
    name: 'do',
    arguments: { text },
  })),
  {
    ...rpcDoor('JSON-RPC message/send', 'agent', 'message/send', (call) => ({ agent: PEER, ...message(call) })),
    beginsTask: true,
  },
  mcpDoor('a model as an MCP tool', 'model', `/mcp/model/${PEER}`, 'chat', (text) => ({
    prompt: text,
    max_tokens: 5_000,
  })),
  mcpDoor('an agent as an MCP tool', 'agent', `/mcp/a2a/${PEER}`, 'send_message', (text) => ({ message: text })),
  mcpDoor('a model by the tool of the aggregate', 'model', '/mcp', 'ask_model', (text) => ({
    model: PEER,
    prompt: text,
    max_tokens: 5_000,
  })),
  mcpDoor('an agent by the tool of the aggregate', 'agent', '/mcp', 'ask_agent', (text) => ({
    agent: PEER,
    message: text,
  })),
  a2aDoor('a model as an A2A agent', 'model', `model/${PEER}`),
  a2aDoor('a tool as an A2A agent', 'tool', `mcp/${PEER}/do`),
];

/** Addresses of the routes that bill calls. Each is a POST. `:name` is a parameter, `*` the rest of a path. */
export const BILLED_PATHS: readonly string[] = [
  ...WIRES.map(({ path }) => path),
  '/api/v1/responses/compact',
  '/api/v1beta/models/{model}:streamGenerateContent',
  '/api/v1beta/models/{model}:embedContent',
  '/api/v1beta/models/{model}:batchEmbedContents',
  ...KINDS_OF_MODELS.flatMap(([, { paths }]) => paths.map((path) => `/api/v1${path}`)),
  '/api/v2/rerank',
  '/api/v1/image/generate',
  '/api/v1/images',
  '/api/v1/images/generations',
  '/api/v1/image/edit',
  '/api/v1/images/edits',
  '/api/v1/video/queue',
  '/api/v1/videos',
  '/api/v1/rpc',
  ...['/mcp', '/a2a'].flatMap((path) => [path, `${path}/*`, `/api/v1${path}`, `/api/v1${path}/*`]),
];
