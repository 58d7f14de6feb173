import { isObject, type JsonMember, membersOf, RawJsonError, splice, withMembers } from '#wire';
import type { JsonRpcError, RequestMessage } from '#json-rpc';
import { printable } from '#security';
import { nearestNames } from '#catalog';
import { ERROR } from '../../wire/revisions.ts';
import { nameOfEarlier, splitName, splitUri } from './names.ts';
import type { BridgedKind } from '../builtin/bridged-services.ts';
import { ASK, askedBy, OWN } from './own-tools.ts';
import type { IsStranger } from './strangers.ts';
import type { Scope, ServiceTable, Tables } from './tables.ts';

export type RequestDestination =
  /** To a service. `text` is the message with the names that its server knows; all else is unchanged. */
  | { readonly kind: 'service'; readonly service: string; readonly text: string }
  | { readonly kind: 'find'; readonly arguments: unknown }
  /** To the agent or the model that the arguments name. */
  | { readonly kind: 'ask'; readonly bridgedKind: BridgedKind; readonly arguments: unknown }
  | { readonly kind: 'refused'; readonly error: JsonRpcError };

export interface Here {
  readonly scope: Scope;
  readonly tables: Tables;
  readonly isStranger: IsStranger;
  /** The kinds that can be asked. A function, because the search runs only if needed. */
  readonly asks: () => readonly BridgedKind[];
}

/**
 * Resolves a request that names a tool, a prompt or a resource of the aggregate. Other methods belong to no single
 * service, and are refused.
 */
export function resolveRequest(message: RequestMessage, here: Here): RequestDestination {
  try {
    switch (message.method) {
      case 'tools/call':
        return message.params?.['name'] === OWN.call ? resolveWrapped(message, here) : resolveTool(message, here);
      case 'prompts/get':
        return resolveNamed(message, 'prompts', message.params?.['name'], here, (name) =>
          setParam(message, 'name', name),
        );
      case 'resources/read':
      case 'resources/subscribe':
      case 'resources/unsubscribe':
        return resolveUri(message.params?.['uri'], here, (uri) => setParam(message, 'uri', uri));
      case 'completion/complete':
        return resolveCompletion(message, here);
      default:
        return refused(
          ERROR.methodNotFound,
          `${printable(message.method)} is not supported at this address, which has several services`,
        );
    }
  } catch (error) {
    // Refused, because the server could read another value than the gateway.
    if (error instanceof RawJsonError)
      return refused(ERROR.invalidParams, 'The request has a duplicate key in an object');
    throw error;
  }
}

function resolveTool(message: RequestMessage, here: Here): RequestDestination {
  const name = message.params?.['name'];
  return (
    resolveOwn(name, message.params?.['arguments'], here.asks) ??
    resolveNamed(message, 'tools', name, here, (own) => setParam(message, 'name', own))
  );
}

function resolveOwn(name: unknown, args: unknown, asks: Here['asks']): RequestDestination | null {
  if (name === OWN.find) return { kind: 'find', arguments: args };
  const bridgedKind = askedBy(name);
  return bridgedKind !== null && asks().includes(bridgedKind) ? { kind: 'ask', bridgedKind, arguments: args } : null;
}

function resolveWrapped(message: RequestMessage, here: Here): RequestDestination {
  const wrapped = message.params?.['arguments'];
  const params = paramsOf(message);
  if (!isObject(wrapped)) return refused(ERROR.invalidParams, `${OWN.call} needs the name of a tool and its arguments`);
  const inner = membersOf(message.text, membersOf(message.text, params.start).get('arguments')!.start).get('arguments');
  const { name } = wrapped;
  const args = wrapped['arguments'] === null ? {} : wrapped['arguments'];
  if (args !== undefined && !isObject(args))
    return refused(ERROR.invalidParams, 'The arguments for the tool must be an object');
  const own = resolveOwn(name, args, here.asks);
  if (own) return own;
  const written = inner ? message.text.slice(inner.start, inner.end) : null;
  const rawArguments = written === 'null' ? '{}' : written;
  return resolveNamed(message, 'tools', name, here, (its) =>
    splice(message.text, [withMembers(message.text, params, { name: JSON.stringify(its), arguments: rawArguments })]),
  );
}

function resolveNamed(
  message: RequestMessage,
  kind: 'tools' | 'prompts',
  name: unknown,
  here: Here,
  rewrite: (own: string) => string,
): RequestDestination {
  if (typeof name !== 'string')
    return refused(
      ERROR.invalidParams,
      `params.name must be the name of a ${kind === 'tools' ? 'tool' : 'prompt'}: ${kind}/list shows all`,
      {
        param: 'params.name',
      },
    );
  const prefix = splitName(name)?.prefix;
  // The name may begin with a slug too. A slug is never the prefix of another service: it has `-` and no `_`, or it is
  // the same word.
  const table =
    prefix === undefined ? null : tableOf(here.tables.prefixed(prefix) ?? here.tables.service(prefix), here);
  const own = table && ownName(table, kind, name);
  if (table && own !== null && own !== undefined)
    return { kind: 'service', service: table.service, text: rewrite(own) };
  const nearest = nearestNames(name, candidates(table, kind, here));
  const hint = nearest.length > 0 ? ` The nearest: ${nearest.join(', ')}` : ` ${kind}/list shows all`;
  return refused(
    ERROR.invalidParams,
    `There is no ${kind === 'tools' ? 'tool' : 'prompt'} ${printable(name)} here.${hint}`,
    { nearest },
  );
}

/**
 * The service's own name for a tool or prompt; null if the service does not have it. The own name after `__` is
 * accepted too, even if the tool is listed under another name, because clients have stored such names. If a list is
 * unknown or incomplete, the name is accepted as well.
 */
function ownName(table: ServiceTable, kind: 'tools' | 'prompts', exposed: string): string | null {
  const { listing, prefix, tools, prompts } = table;
  const name = kind === 'tools' ? tools.get(exposed)?.tool.name : prompts.get(exposed)?.key;
  if (name !== undefined) return name;
  const names = kind === 'tools' ? [...listing.tools.keys()] : listing.prompts.map(({ key }) => key);
  const { rest } = splitName(exposed)!;
  const earlier = names.includes(rest) ? rest : nameOfEarlier(exposed, prefix, names);
  const complete = listing.listings.every((one) => one !== null && !one.truncated);
  return earlier ?? (complete ? null : rest);
}

function* candidates(
  first: ServiceTable | null,
  kind: 'tools' | 'prompts',
  { scope, tables, isStranger, asks }: Here,
): Generator<string> {
  if (first) yield* namesOf(first, kind, scope);
  if (kind === 'tools') yield* [OWN.find, OWN.call, ...asks().map((bridgedKind) => ASK[bridgedKind])];
  // Only so many are compared, so those of strangers come last.
  for (const isLast of [false, true])
    for (const service of scope.services) {
      const table = service === first?.service ? null : tables.tableOf(service);
      if (table && table.listing.offers.every(isStranger) === isLast) yield* namesOf(table, kind, scope);
    }
}

function* namesOf(table: ServiceTable, kind: 'tools' | 'prompts', { access }: Scope): Generator<string> {
  if (access === null) return yield* table[kind].keys();
  if (kind === 'prompts') return yield* access.allows('tool', table.service, null) ? table.prompts.keys() : [];
  for (const [name, { tool }] of table.tools) if (access.allows('tool', table.service, tool.name)) yield name;
}

function resolveUri(exposed: unknown, here: Here, rewrite: (uri: string) => string): RequestDestination {
  if (typeof exposed !== 'string') return refused(ERROR.invalidParams, 'The request needs a uri');
  const split = splitUri(exposed);
  const table = split && tableOf(here.tables.service(split.slug), here);
  if (!split || !table) return refused(ERROR.invalidParams, `There is no resource ${printable(exposed)} here`);
  return { kind: 'service', service: table.service, text: rewrite(split.uri) };
}

function resolveCompletion(message: RequestMessage, here: Here): RequestDestination {
  const ref = message.params?.['ref'];
  if (!isObject(ref)) return refused(ERROR.invalidParams, 'completion/complete needs a ref');
  const place = membersOf(message.text, paramsOf(message).start).get('ref')!;
  const setRef = (key: string) => (value: string) =>
    splice(message.text, [withMembers(message.text, place, { [key]: JSON.stringify(value) })]);
  if (ref['type'] === 'ref/prompt') return resolveNamed(message, 'prompts', ref['name'], here, setRef('name'));
  return resolveUri(ref['uri'], here, setRef('uri'));
}

function tableOf(service: string | null, { scope, tables }: Here): ServiceTable | null {
  return service !== null && scope.includes(service) ? tables.tableOf(service) : null;
}

const paramsOf = ({ members }: RequestMessage): JsonMember => members.get('params')!;

function setParam(message: RequestMessage, key: string, value: string): string {
  return splice(message.text, [withMembers(message.text, paramsOf(message), { [key]: JSON.stringify(value) })]);
}

function refused(code: number, text: string, data?: unknown): RequestDestination {
  return { kind: 'refused', error: { code, message: text, ...(data === undefined ? {} : { data }) } };
}
