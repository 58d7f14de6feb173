import type { Spine } from '../../support/spine.ts';

export interface ToolBlock {
  readonly name: string;
  readonly url: string;
  /** TOML of `[tools.pricing]`; default 0.001 USD a call. */
  readonly pricing?: string;
  readonly provider?: string;
}

/** A `[[tools]]` block for a gateway's file. */
export function toolToml({ name, url, pricing = 'per_call = 0.001', provider = 'Tools' }: ToolBlock): string {
  return `
[[tools]]
name = "${name}"
display_name = "${provider}: ${name}"
provider_name = "${provider}"
endpoint = "${url}"
[tools.pricing]
${pricing}
`;
}

/** JSON that a test looks into. What is not there is undefined, as in JSON. */
export interface Tree {
  readonly [key: string]: Tree;
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The response message, out of JSON or the last event. */
  readonly message: {
    readonly id: unknown;
    readonly result: Tree;
    readonly error?: { readonly code: number; readonly message: string; readonly data?: Tree };
  };
}

export interface PostOptions {
  readonly key?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly meta?: Readonly<Record<string, unknown>>;
  readonly signal?: AbortSignal;
  readonly id?: number | string;
}

const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} }, sampling: {}, roots: {} },
};

/** Where a client comes in. */
export type A2aHandler = Pick<Spine, 'origin' | 'key'>;

/** Posts one modern request to a path of the gateway. */
export async function modernPost(
  spine: A2aHandler,
  path: string,
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  { key = spine.key, headers = {}, meta = {}, signal, id = 1 }: PostOptions = {},
): Promise<Reply> {
  const name = params['name'] ?? params['uri'];
  const body = JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: { ...ENVELOPE, ...meta } } });
  const response = await fetch(`${spine.origin}${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof name === 'string' ? { 'mcp-name': name } : {}),
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...headers,
    },
    body,
    ...(signal ? { signal } : {}),
  });
  return toReply(response);
}

export async function toReply(response: Response): Promise<Reply> {
  const text = await response.text();
  const events = text.split('\n').filter((line) => line.startsWith('data: '));
  const last = response.headers.get('content-type')?.startsWith('text/event-stream') ? events.at(-1)!.slice(6) : text;
  return {
    status: response.status,
    headers: response.headers,
    text,
    message: JSON.parse(last === '' ? '{}' : last) as Reply['message'],
  };
}

/** Calls a tool of a service. */
export function callTool(
  spine: A2aHandler,
  service: string,
  tool: string,
  args: object = {},
  options: PostOptions & { readonly params?: object } = {},
): Promise<Reply> {
  return modernPost(
    spine,
    `/mcp/${service}`,
    'tools/call',
    { name: tool, arguments: args, ...options.params },
    options,
  );
}
