import { isObject, membersOf, splice, withMembers, type JsonObject } from '#wire';
import type { UpstreamRequest } from '#call';
import type { Link } from './resolve.ts';
import type { Extensions } from '../protocol/extensions.ts';
import { A2aError } from '../wire/errors.ts';
import { bareFromSend } from '../wire/bare-body.ts';
import { exactly, exactValue } from '../wire/edit-json.ts';
import { isStreaming, methodOf, type A2aOperation, VERSION_HEADER, type A2aVersion } from '../wire/protocol.ts';
import { restRequest } from '../wire/rest.ts';
import { translateParams } from '../wire/translate.ts';

interface AgentRequest {
  readonly operation: A2aOperation;
  readonly version: A2aVersion;
  readonly params: JsonObject;
  /** The client's own text of `params`. Default: `params` as JSON. */
  readonly paramsText?: string;
  readonly id: string;
  readonly requestId: string;
  /** The extensions that the client activates. Default: none. */
  readonly extensions?: Extensions | null;
  /**
   * The run token for the agent, sent in `metadata["tollgate/run"]` of the message and in the header. Default: none.
   */
  readonly run?: RunGift | null;
  /**
   * The webhook that the agent notifies, in place of the client's; null for no notifications. Absent if the client
   * asked for no notifications.
   */
  readonly webhook?: string | null;
}

/** Lets an agent make calls under the call that it works on. They are paid from the lock of that call. */
export interface RunGift {
  readonly token: string;
  /** Base URL of the OpenAI-style API; null if the gateway does not know its own address. */
  readonly url: string | null;
  /** Amount in USD. */
  readonly budget: string;
}

const RUN_HEADER = 'tollgate-run';
const RUN_KEY = 'tollgate/run';

/**
 * The request of an operation to an agent. If client and agent speak the same version over JSON-RPC, the parameters are
 * forwarded unchanged. Throws A2aError if the agent has no such operation.
 */
export function agentRequest(link: Link, agentCall: AgentRequest): UpstreamRequest {
  const { operation, version, params, requestId, extensions = null, run = null } = agentCall;
  const paramsText = agentCall.paramsText ?? JSON.stringify(params);
  const method = methodOf(link.version, operation);
  if (method === null || (link.binding === 'bare' && operation !== 'send'))
    throw new A2aError('UnsupportedOperation', 'The A2A version of the agent does not have this operation');
  const headers = {
    'content-type': 'application/json',
    accept: isStreaming(operation) ? 'text/event-stream' : 'application/json',
    [VERSION_HEADER]: link.version,
    'x-request-id': requestId,
    ...extensions?.headersFor(link.version),
    ...(run === null ? {} : { [RUN_HEADER]: run.token }),
  };
  const base = { headers, listens: operation === 'subscribe' } as const;
  const post = (body: string): UpstreamRequest => ({ ...base, method: 'POST', path: link.path, body });
  /** The parameters with what only the gateway may set: the tenant, the webhook and the run. */
  const withOwn = (text: string, value: unknown): string => {
    const withLink = withTenant(text, value, link);
    return withRun(
      agentCall.webhook === undefined ? withLink : withOwnWebhook(link.version, withLink, agentCall.webhook),
      params,
      run,
    );
  };
  const envelope = (text: string): string =>
    `{"jsonrpc":"2.0","id":${JSON.stringify(agentCall.id)},"method":"${method}","params":${text}}`;
  if (version === link.version && link.binding === 'jsonrpc') return post(envelope(withOwn(paramsText, params)));
  const translated = translateParams(operation, version, link.version, exactValue(paramsText, params));
  const text = withOwn(JSON.stringify(translated), translated);
  if (link.binding === 'jsonrpc') return post(envelope(text));
  const written = exactly(text) as JsonObject;
  if (link.binding === 'bare') return post(JSON.stringify(bareFromSend(written)));
  const request = restRequest(operation, written);
  if (typeof request === 'string') throw new A2aError('InvalidParams', request);
  return {
    ...base,
    method: request.verb,
    path: link.path + request.path,
    body: request.body === undefined ? null : JSON.stringify(request.body),
  };
}

/** Replaces the client's tenant, which is meant for this gateway, with the tenant in the agent's card. */
function withTenant(text: string, params: unknown, { version, tenant }: Link): string {
  if (version !== '1.0' || !isObject(params) || (tenant === null && !Object.hasOwn(params, 'tenant'))) return text;
  return splice(text, [withMembers(text, whole(text), { tenant: tenant === null ? null : JSON.stringify(tenant) })]);
}

/**
 * Adds the data that the agent needs to make calls to the metadata of the message. Executors find it there even if the
 * headers are lost on the way.
 */
function withRun(asIs: string, params: JsonObject, run: RunGift | null): string {
  const text = withoutClaims(asIs, params);
  if (run === null) return text;
  const message = membersOf(text).get('message');
  if (!message || text[message.start] !== '{') return text;
  const metadata = membersOf(text, message.start).get('metadata');
  const value = JSON.stringify({
    token: run.token,
    ...(run.url === null ? {} : { url: run.url }),
    budget_usd: run.budget,
  });
  if (metadata && text[metadata.start] === '{')
    return splice(text, [withMembers(text, metadata, { [RUN_KEY]: value })]);
  return splice(text, [withMembers(text, message, { metadata: `{${JSON.stringify(RUN_KEY)}:${value}}` })]);
}

/**
 * Removes a run that the client has set. Only the gateway gives runs, because a client could otherwise make agents call
 * any address.
 */
function withoutClaims(text: string, { metadata, message }: JsonObject): string {
  const holders = [
    { path: [], metadata },
    { path: ['message'], metadata: isObject(message) ? message['metadata'] : undefined },
  ];
  return holders
    .filter((holder) => isObject(holder.metadata) && Object.hasOwn(holder.metadata, RUN_KEY))
    .reduce((rest, { path }) => {
      const at = path.reduce((start, name) => membersOf(rest, start).get(name)?.start ?? start, 0);
      const span = membersOf(rest, at).get('metadata');
      return span && rest[span.start] === '{' ? splice(rest, [withMembers(rest, span, { [RUN_KEY]: null })]) : rest;
    }, text);
}

const whole = (text: string) => ({ start: text.indexOf('{'), end: text.lastIndexOf('}') + 1 });

const PUSH_MEMBERS = { '0.3': 'pushNotificationConfig', '1.0': 'taskPushNotificationConfig' } as const satisfies Record<
  A2aVersion,
  string
>;
/**
 * Names that drafts and other spellings have for this member. They are removed too, so that no agent reads a client's
 * webhook from them.
 */
const OTHER_PUSH_MEMBERS = [
  'pushNotification',
  'push_notification_config',
  'task_push_notification_config',
  'push_notification',
] as const;

/**
 * Replaces the client's webhook with the gateway's in the parameters of a send, which are JSON text in the agent's
 * version. The gateway keeps the client's address and secrets, and notifies the client itself. `url` null: removes the
 * webhook.
 */
export function withOwnWebhook(version: A2aVersion, paramsText: string, url: string | null): string {
  const configuration = membersOf(paramsText).get('configuration');
  const own = url === null ? null : JSON.stringify({ url });
  const change: Record<string, string | null> = Object.fromEntries(
    [...Object.values(PUSH_MEMBERS), ...OTHER_PUSH_MEMBERS].map((name) => [name, null]),
  );
  change[PUSH_MEMBERS[version]] = own;
  if (configuration && paramsText[configuration.start] === '{')
    return splice(paramsText, [withMembers(paramsText, configuration, change)]);
  if (own === null) return paramsText;
  return splice(paramsText, [
    withMembers(paramsText, whole(paramsText), { configuration: `{${JSON.stringify(PUSH_MEMBERS[version])}:${own}}` }),
  ]);
}
