import { GatewayError, errorText, type JsonRpcError, printable, type RequestMessage } from '#wire';
import { eitherOf } from '#billing/amounts';
import { ownerOf } from '#tasks';
import type { Caller, Catalog, TargetAdapters } from '#gateway';
import type { ToolCatalogue } from '../../catalogue/tool-catalogue.ts';
import {
  type SessionTransport,
  type SessionTransportDeps,
  createSessionTransport,
} from '../../http/session-transport.ts';
import { type CancelNotes, cancelledId, createRunningRequests, runCancellable } from '../../request/cancellation.ts';
import {
  type KeptSessions,
  type KeptSessionsDeps,
  createKeptSessions,
  type KeptSession,
} from '../../sessions/kept-sessions.ts';
import type { RunStateless } from '../../call/stateless.ts';
import type { AnswerAsk } from './answer-ask.ts';
import { bridgedService, fullName, offersOf, priceOf, type BridgedService, WORD } from './bridged-services.ts';
import { quote } from '../../wire/errors-mcp.ts';
import { endOwn, ownResult, type ServerInfo } from '../own-answer.ts';
import { openedWith, refuseTooMany } from '../../sessions/sessions.ts';
import { NO_SESSION } from '../../request/mcp-request.ts';
import { ERROR, agreedRevision, MODERN } from '../../wire/revisions.ts';
import { TOOL_META } from '../../catalogue/decorate.ts';
import { AGENT_OUTPUT, askSchema, BRIDGED_TOOL } from './ask-tools.ts';

interface BuiltinServersDeps extends PrimitiveServersDeps, SessionTransportDeps, KeptSessionsDeps {
  readonly catalogue: Pick<ToolCatalogue, 'service'>;
  readonly answerAsk: AnswerAsk;
  readonly cancels: CancelNotes;
}

/** Agents and models as MCP servers of the gateway: `/mcp/a2a/<agent>`, `/mcp/model/<model>`. */
interface BuiltinServers {
  /** Whether an address is that of an agent or a model. A tool service with exactly this name has precedence. */
  has(service: string): boolean;
  readonly stateless: RunStateless;
  readonly serviceTransport: SessionTransport;
  readonly sessions: Pick<KeptSessions<BuiltinSession>, 'sweep' | 'count' | 'close'>;
}

export function createBuiltinServers(deps: BuiltinServersDeps): BuiltinServers {
  const { targets, catalogue, config } = deps;
  const sessions = createBuiltinSessions(deps);
  const endpoints = { ...deps, serverOf: createPrimitiveServers(deps) };
  return {
    has: (service) => bridgedService(targets(), service) !== null && catalogue.service(service) === null,
    stateless: createBuiltinStateless(endpoints),
    serviceTransport: createBuiltinTransport({ ...endpoints, sessions, sessionsMax: config.sessionsMax }),
    sessions,
  };
}

interface BuiltinStatelessDeps {
  readonly serverOf: PrimitiveServerOf;
  readonly answerAsk: AnswerAsk;
}

/** Answers requests without a session, modern or bare, to an agent or a model. Throws GatewayError. */
function createBuiltinStateless({ serverOf, answerAsk }: BuiltinStatelessDeps): RunStateless {
  return async (service, { message, client, events }, context, answer) => {
    const server = serverOf(service, context.caller);
    if (server === null) throw new GatewayError('not_found', `${quote(service)} no longer exists`);
    const { method, params } = message;
    const modern = client === 'modern';
    switch (method) {
      case 'server/discover':
        return endOwn(answer, message, { result: server.discoverResult() }, modern);
      case 'ping':
        return endOwn(answer, message, { result: '{}' }, modern);
      case 'tools/list':
        return endOwn(answer, message, { result: server.listResult(modern) }, modern);
      case 'tools/call': {
        const fault = server.toolFault(message);
        if (fault) return endOwn(answer, message, { error: fault }, modern);
        const { kind, name, info } = server;
        const ask = { kind, name, arguments: params?.['arguments'], message, client, events, info };
        return answerAsk(ask, context, answer);
      }
      default:
        return endOwn(answer, message, { error: onlyTools(method) }, modern);
    }
  };
}

interface BuiltinTransportDeps extends SessionTransportDeps {
  readonly serverOf: PrimitiveServerOf;
  readonly answerAsk: AnswerAsk;
  readonly sessions: KeptSessions<BuiltinSession>;
  readonly cancels: CancelNotes;
  /** Most sessions of one account. */
  readonly sessionsMax: number;
}

const NO_STREAM = {
  code: ERROR.server,
  message: 'This server sends messages only in its replies, so there is no stream to listen to',
};

/** Answers clients that have a session with an agent or a model. */
function createBuiltinTransport(deps: BuiltinTransportDeps): SessionTransport {
  const { serverOf, answerAsk, sessions, cancels, sessionsMax } = deps;
  const running = createRunningRequests(cancels);
  const isWith = (service: string | null) => (session: BuiltinSession) => session.service === service;

  return createSessionTransport<BuiltinSession>(
    {
      async open(service, message, { caller }) {
        const server = serverOf(service!, caller);
        if (server === null) return { session: null, tail: NO_SESSION };
        const session = await sessions.add({ ...ownerOf(caller), service: service! });
        if (session === null) return refuseTooMany(message, sessionsMax);
        return openedWith(session, message, server.initializeResult(message.params?.['protocolVersion']));
      },
      enter: (service, id, owner) => sessions.enter(id, owner, isWith(service)),
      async request({ session, ended }, asked, events, context, answer) {
        const { method, params } = asked;
        const server = serverOf(session.service, context.caller);
        if (server === null) return answer.end(NO_SESSION.text, NO_SESSION.status);
        if (method === 'tools/list') return endOwn(answer, asked, { result: server.listResult(false) }, false);
        if (method !== 'tools/call') return endOwn(answer, asked, { error: onlyTools(method) }, false);
        const fault = server.toolFault(asked);
        if (fault) return endOwn(answer, asked, { error: fault }, false);
        const { kind, name, info } = server;
        const ask = {
          kind,
          name,
          arguments: params?.['arguments'],
          message: asked,
          client: 'legacy',
          events,
          info,
        } as const;
        await runCancellable(running, session.id, null, asked, answer, (cancelled) =>
          answerAsk(ask, context, answer, eitherOf(eitherOf(context.gone, ended), cancelled)),
        );
      },
      async tell({ session }, message) {
        if (message.kind !== 'notification' || message.method !== 'notifications/cancelled') return null;
        const id = cancelledId(message);
        const here = running.find(session.id, id);
        if (here) here.cancel();
        else await cancels.note(session, id);
        return null;
      },
      listen: async (_use, _lastEventId, _context, answer) => answer.end(errorText('null', NO_STREAM), 405),
      end: async (service, id, owner) => (await sessions.end(id, owner, isWith(service))) !== null,
    },
    deps,
  );
}

/** The error for a method that an agent or a model does not have. */
const onlyTools = (method: string) => ({
  code: ERROR.methodNotFound,
  message: `This server has only tools. It does not support the method ${quote(method)}`,
});

/** The session of a legacy client with an agent or a model. */
interface BuiltinSession extends KeptSession {
  /** The full name of the agent or model, such as `a2a/weather`. */
  readonly service: string;
}

const createBuiltinSessions = (deps: KeptSessionsDeps): KeptSessions<BuiltinSession> =>
  createKeptSessions<BuiltinSession>({
    ...deps,
    kind: 'mcp-front',
    // The name alone is what older gateways store and read.
    toState: ({ service, within = null }) => (within === null ? service : JSON.stringify([service, within])),
    fromState({ id, account, state }) {
      const [service, within] = state.startsWith('[') ? (JSON.parse(state) as [string, string]) : [state, null];
      return { id, account, within, service };
    },
  });

/** One agent or model as an MCP server with one tool. */
interface PrimitiveServer extends Pick<BridgedService, 'kind' | 'name'> {
  readonly info: ServerInfo;
  /** The result of `server/discover`, as JSON text. */
  discoverResult(): string;
  /**
   * The result of `initialize`, as JSON text, in the revision that the client asks for if it is known, else the newest.
   */
  initializeResult(asked: unknown): string;
  /** The result of `tools/list`, as JSON text. */
  listResult(modern: boolean): string;
  /** The error of a `tools/call` that names a wrong tool; null for the right tool. */
  toolFault(message: RequestMessage): JsonRpcError | null;
}

/**
 * The server at an address for a caller. Null if the address is not one of an agent or a model. Throws GatewayError
 * `permission_denied`.
 */
type PrimitiveServerOf = (service: string, caller: Pick<Caller, 'key'>) => PrimitiveServer | null;

interface PrimitiveServersDeps {
  readonly targets: () => Partial<TargetAdapters>;
  readonly catalog: Pick<Catalog, 'resolve'>;
  /** Version of this program. */
  readonly version: string;
}

const DOES = {
  a2a: 'Send a message to the agent',
  model: 'Ask the model',
  image: 'Make an image with',
  video: 'Make a video with',
} as const;
const CAPABILITIES = '{"tools":{}}';

function createPrimitiveServers({ targets, catalog, version }: PrimitiveServersDeps): PrimitiveServerOf {
  return (service, { key }) => {
    const bridged = bridgedService(targets(), service);
    if (bridged === null) return null;
    const { kind, name } = bridged;
    const { service: resolved, offers } = offersOf(catalog, kind, name);
    if (key?.allowedServices && !key.allowedServices.includes(resolved))
      throw new GatewayError('permission_denied', `This API key may not use ${resolved}`, { param: 'model' });
    const { displayName, description } = offers[0]!;
    const info = { name: fullName(kind, name), title: displayName, version };
    const tool = BRIDGED_TOOL[kind];
    const instructions = JSON.stringify(
      `This is the ${WORD[kind]} ${displayName}, through a gateway that charges your account for answers. ${tool} asks it; its price is in _meta["${TOOL_META.price}"].`,
    );

    return {
      kind,
      name,
      info,
      discoverResult: () =>
        ownResult(
          { supportedVersions: JSON.stringify([MODERN]), capabilities: CAPABILITIES, instructions },
          info,
          true,
          true,
        ),
      initializeResult(asked) {
        const members = {
          protocolVersion: JSON.stringify(agreedRevision(asked)),
          capabilities: CAPABILITIES,
          serverInfo: JSON.stringify(info),
          instructions,
        };
        return ownResult(members, info, false, false);
      },
      listResult(modern) {
        const definition = {
          name: tool,
          title: displayName,
          description: `${DOES[kind]} ${displayName}.${description === '' ? '' : ` ${description}`}`,
          inputSchema: askSchema(kind, false),
          ...(kind === 'a2a' ? { outputSchema: AGENT_OUTPUT } : {}),
          _meta: { [TOOL_META.price]: priceOf(offers) },
        };
        return ownResult({ tools: JSON.stringify([definition]) }, info, modern, true);
      },
      toolFault({ params }) {
        const named = params?.['name'];
        if (named === tool) return null;
        if (typeof named !== 'string') return { code: ERROR.invalidParams, message: 'tools/call needs a name' };
        return { code: ERROR.invalidParams, message: `There is no tool ${printable(named)} here: the tool is ${tool}` };
      },
    };
  };
}
