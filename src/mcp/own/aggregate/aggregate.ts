import type { RequestMessage } from '#wire';
import type { Caller } from '#gateway';
import { LISTS, type ListMethod } from '../../catalogue/read-page.ts';
import type { ToolCatalogue } from '../../catalogue/tool-catalogue.ts';
import { ERROR } from '../../wire/revisions.ts';
import { discoverResult, initializeResult } from './about.ts';
import { fromCursor } from './cursor.ts';
import { findTools } from './find-tools.ts';
import { mergedPage } from './merged-list.ts';
import { type BridgedSearch, admitsIn } from '../builtin/bridged-search.ts';
import { askToolTexts, OWN_TOOLS } from './own-tools.ts';
import { resolveRequest, type Resolution } from './resolve.ts';
import { ownResult, type ServerInfo } from '../result-text.ts';
import { scopeOf, type Scope } from './scope.ts';
import type { OnShared } from './slugs.ts';
import { createTables } from './tables.ts';
import { toClientText } from './to-client.ts';
import { exposeUri, splitUri } from './uris.ts';
import type { OwnAnswer } from '../end-own.ts';

/**
 * All tool services as one MCP server, with tools that ask agents and models. It lists what the catalogue knows, and
 * asks no server.
 */
export interface Aggregate {
  readonly info: ServerInfo;
  /** `selection` is the value of `?services=`; null without one. */
  scope(caller: Pick<Caller, 'key'>, selection: string | null): Scope;
  /** One page of a list. */
  list(method: ListMethod, cursor: unknown, scope: Scope, modern: boolean): OwnAnswer;
  /** Finds the service of a request that names a tool, a prompt or a resource. */
  resolve(message: RequestMessage, scope: Scope): Resolution;
  /** The result of a call of `find_tools`, as JSON text. */
  find(args: unknown, scope: Scope, modern: boolean): string;
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
  /** Version of this program. */
  readonly version: string;
  /** The agents and models that can be asked. */
  readonly bridged: BridgedSearch;
  /** With more tools than this, the tools are not listed, but can be found with `find_tools`. Default: 200. */
  readonly findAbove?: number;
  /** Called with services that would have the same name. */
  readonly onShared?: OnShared;
}

export function createAggregate({
  catalogue,
  version,
  bridged,
  findAbove = 200,
  onShared,
}: AggregateOptions): Aggregate {
  const tables = createTables(catalogue, onShared);
  const info = { name: 'tollgate', title: 'tollgate', version };

  const tooMany = (scope: Scope) => {
    let tools = 0;
    for (const service of scope.services)
      if ((tools += catalogue.service(service)?.tools.size ?? 0) > findAbove) return true;
    return false;
  };

  const asksIn = (scope: Scope) => bridged.kinds(admitsIn(scope));

  return {
    info,
    scope: (caller, selection) => scopeOf(catalogue.services(), caller, selection),
    list(method, cursor, scope, modern) {
      const after =
        cursor === undefined || cursor === null ? null : typeof cursor === 'string' ? fromCursor(cursor) : undefined;
      if (after === undefined || (after === null && typeof cursor === 'string'))
        return {
          error: {
            code: ERROR.invalidParams,
            message: 'Unknown cursor. Repeat the request without a cursor',
          },
        };
      const found = method === 'tools/list' && tooMany(scope);
      const { items, nextCursor } = found
        ? { items: OWN_TOOLS, nextCursor: null }
        : mergedPage(
            scope.services.flatMap((service) => tables.of(service) ?? []),
            method,
            after,
          );
      const asks = method === 'tools/list' && after === null ? askToolTexts(asksIn(scope), !found) : [];
      const members = {
        [LISTS[method].member]: `[${[...items, ...asks].join()}]`,
        ...(nextCursor === null ? {} : { nextCursor: JSON.stringify(nextCursor) }),
      };
      return { result: ownResult(members, info, modern, true) };
    },
    resolve: (message, scope) => resolveRequest(message, { scope, tables, asks: () => asksIn(scope) }),
    find: (args, scope, modern) =>
      ownResult(findTools(args, scope, { catalogue, tables, bridged }), info, modern, false),
    toClient: (text, service) => toClientText(text, tables.slug(service)),
    uriOf(exposed, scope) {
      const split = splitUri(exposed);
      const service = split && tables.service(split.slug);
      return service && scope.includes(service) ? { service, uri: split.uri } : null;
    },
    exposeUri: (service, uri) => exposeUri(tables.slug(service), uri),
    discoverResult: () => discoverResult(info),
    initializeResult: (revision) => initializeResult(info, revision),
  };
}
