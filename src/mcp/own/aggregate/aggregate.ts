import type { RequestMessage } from '#json-rpc';
import type { Caller } from '#accounts';
import { LISTS, type ListMethod } from '../../shapes/lists.ts';
import type { ListChange, ToolCatalogue } from '../../catalogue/tool-catalogue.ts';
import { ERROR, MODERN } from '../../wire/revisions.ts';
import { fromCursor, mergedPage } from './merged-list.ts';
import { findTools } from './find-tools.ts';
import { type BridgedSearch, admitsIn } from '../builtin/bridged-services.ts';
import { askToolTexts, OWN_TOOLS, OWN } from './own-tools.ts';
import { resolveRequest, type RequestDestination } from './resolve.ts';
import { ownResult, type ServerInfo, type OwnAnswer } from '../own-answer.ts';
import { concerns, type IsStranger, shownServices } from './strangers.ts';
import { scopeOf, type Scope, createTables } from './tables.ts';
import { type OnShared, exposeUri, splitUri } from './names.ts';
import { toClientText } from './uri-edits.ts';
import { TASKS } from '../../request/extension.ts';

/**
 * All tool services as one MCP server, with tools that ask agents and models. It lists what the catalogue knows of the
 * operator's services and of those that the caller names, and asks no server. All others are found.
 */
export interface Aggregate {
  readonly info: ServerInfo;
  /** `selection` is the value of `?services=`; null without one. */
  scope(caller: Pick<Caller, 'key'>, selection: string | null): Scope;
  list(method: ListMethod, cursor: unknown, scope: Scope, modern: boolean): Promise<OwnAnswer>;
  /** Whether a change of a service can change the lists of a scope. */
  concerns(change: ListChange, scope: Scope): boolean;
  resolve(message: RequestMessage, scope: Scope): RequestDestination;
  /** The result of a call of `find_tools`, as JSON text. */
  find(args: unknown, scope: Scope, modern: boolean): Promise<string>;
  /** A message of a service, with its URIs changed to those of the aggregate. */
  toClient(text: string, service: string): string;
  /** A URI of the aggregate as the service and the service's own URI; null if the scope has no such service. */
  uriOf(exposed: string, scope: Scope): { readonly service: string; readonly uri: string } | null;
  exposeUri(service: string, uri: string): string;
  discoverResult(): string;
  initializeResult(revision: string): string;
}

export interface AggregateOptions {
  readonly catalogue: Pick<ToolCatalogue, 'services' | 'service' | 'since' | 'find'>;
  readonly version: string;
  readonly bridged: BridgedSearch;
  readonly isStranger: IsStranger;
  /** With more tools than this, the tools are not listed, but can be found with `find_tools`. Default: 200. */
  readonly findAbove?: number;
  /** Called with services that would have the same name. */
  readonly onShared?: OnShared;
}

export function createAggregate({
  catalogue,
  version,
  bridged,
  isStranger,
  findAbove = 200,
  onShared,
}: AggregateOptions): Aggregate {
  const tables = createTables(catalogue, onShared);
  const info = { name: 'tollgate', title: 'tollgate', version };

  const asksIn = (scope: Scope) => bridged.kinds(admitsIn(scope));

  return {
    info,
    scope: (caller, selection) => scopeOf(catalogue.services(), caller, selection),
    async list(method, cursor, scope, modern) {
      const after = (cursor ?? '') === '' ? null : typeof cursor === 'string' ? fromCursor(cursor) : undefined;
      if (after === undefined || (after === null && cursor))
        return {
          error: {
            code: ERROR.invalidParams,
            message: 'Unknown cursor. Repeat the request without a cursor',
          },
        };
      const { member } = LISTS[method];
      const listed = await shownServices(member, scope, { catalogue, isStranger, toolsMax: findAbove });
      const { items, nextCursor } = await mergedPage({ ...scope, services: listed.services }, tables, {
        method,
        form: modern ? 'modern' : 'legacy',
        after,
        isStranger,
      });
      const own =
        method === 'tools/list' && after === null
          ? [...(listed.whole ? [] : OWN_TOOLS), ...askToolTexts(asksIn(scope), listed.whole)]
          : [];
      const members = {
        [member]: `[${[...items, ...own].join()}]`,
        ...(nextCursor === null ? {} : { nextCursor: JSON.stringify(nextCursor) }),
      };
      return { result: ownResult(members, info, modern, true) };
    },
    concerns: (change, scope) => concerns(change, scope, isStranger),
    resolve: (message, scope) => resolveRequest(message, { scope, tables, isStranger, asks: () => asksIn(scope) }),
    find: async (args, scope, modern) =>
      ownResult(await findTools(args, scope, { catalogue, tables, bridged, isStranger }), info, modern, false),
    toClient: (text, service) => toClientText(text, tables.slug(service)),
    uriOf(exposed, scope) {
      const split = splitUri(exposed);
      const service = split && tables.service(split.slug);
      return service && scope.includes(service) && (scope.access?.allows('tool', service, null) ?? true)
        ? { service, uri: split.uri }
        : null;
    },
    exposeUri: (service, uri) => exposeUri(tables.slug(service), uri),
    discoverResult: () => discoverResult(info),
    initializeResult: (revision) => initializeResult(info, revision),
  };
}

const CAPABILITIES = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  completions: {},
} as const;

const INSTRUCTIONS = `This is a gateway to many MCP servers ("services").
Names: a tool or prompt is <service>__<name>, a resource is <service>+<uri> or ui://<service>/…
Prices: every tool says what it costs in _meta["tollgate/price"] (USD per call; "0" is free). Calls are charged to your account when they succeed.
Definitions are their provider's words; _meta["tollgate/definition"] says by version and changed_at when they have changed.
Where not all tools are listed, because there are too many or other providers sell them here, ${OWN.find} and ${OWN.call} are listed: find what you need by words, then call it. ${OWN.find} is always there, and free.
Agents and language models can be asked as well, by ${OWN.askAgent} and ${OWN.askModel}, where these are listed; ${OWN.find} finds them.`;

/** The result of `server/discover`, as JSON text. */
function discoverResult(info: ServerInfo): string {
  return ownResult(
    {
      supportedVersions: JSON.stringify([MODERN]),
      capabilities: JSON.stringify({ ...CAPABILITIES, extensions: { [TASKS]: {} } }),
      instructions: JSON.stringify(INSTRUCTIONS),
    },
    info,
    true,
    true,
  );
}

/** The result of `initialize` in a legacy revision, as JSON text. */
function initializeResult(info: ServerInfo, revision: string): string {
  return JSON.stringify({
    protocolVersion: revision,
    capabilities: { ...CAPABILITIES, logging: {} },
    serverInfo: info,
    instructions: INSTRUCTIONS,
  });
}
