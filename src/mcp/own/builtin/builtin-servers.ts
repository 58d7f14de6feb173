import type { ClientAnswer } from '#http';
import { GatewayError } from '#errors';
import { errorText, type JsonRpcError, type RequestMessage } from '#json-rpc';
import { printable } from '#security';
import { runUntilAborted } from '#billing/amounts';
import { ownerOf } from '#tasks';
import type { Caller } from '#accounts';
import { authorise } from '#call';
import type { Catalog } from '#catalog';
import type { TargetAdapters } from '#bridge';
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
import type { AnswerAsk, AskRequest } from './answer-ask.ts';
import { bridgedService, fullName, offersOf, priceOf, type BridgedService, WORD } from './bridged-services.ts';
import { quote } from '../../wire/errors-mcp.ts';
import { endOwn, ownResult, type ServerInfo } from '../own-answer.ts';
import { OPENS_URLS, opensUrls } from '../../request/approval.ts';
import { capabilitiesOf } from '../../sessions/legacy-session.ts';
import { openedWith, refuseTooMany } from '../../sessions/sessions.ts';
import { type McpRequest, noSession } from '../../request/mcp-request.ts';
import { ERROR, agreedRevision, MODERN } from '../../wire/revisions.ts';
import { TOOL_META } from '../../catalogue/decorate.ts';
import { AGENT_OUTPUT, askSchema, BRIDGED_TOOL } from './ask-tools.ts';

interface BuiltinServersDeps extends SessionTransportDeps, KeptSessionsDeps {
  readonly targets: () => Partial<TargetAdapters>;
  readonly catalog: Pick<Catalog, 'resolve'>;
  readonly catalogue: Pick<ToolCatalogue, 'service'>;
  readonly answerAsk: AnswerAsk;
  readonly cancels: CancelNotes;
  readonly version: string;
}

/** Agents and models as MCP servers of the gateway: `/mcp/a2a/<agent>`, `/mcp/model/<model>`. */
interface BuiltinServers {
  /** Whether an address is that of an agent or a model. A tool service with exactly this name has precedence. */
  has(service: string): boolean;
  /** Answers requests without a session, modern or bare. Throws GatewayError. */
  readonly stateless: RunStateless;
  readonly serviceTransport: SessionTransport;
  readonly sessions: Pick<KeptSessions<BuiltinSession>, 'sweep' | 'count' | 'close'>;
}

interface BuiltinSession extends KeptSession {
  /** The full name of the agent or model, such as `a2a/weather`. */
  readonly service: string;
  readonly opensUrls: boolean;
}

export function createBuiltinServers(deps: BuiltinServersDeps): BuiltinServers {
  const { targets, catalogue, config, answerAsk, cancels } = deps;
  const running = createRunningRequests(cancels);
  const sessions = createKeptSessions<BuiltinSession>({
    ...deps,
    kind: 'mcp-front',
    // The name alone is what older gateways store and read.
    toState: ({ service, within = null, opensUrls }) =>
      within === null && !opensUrls ? service : JSON.stringify([service, within, ...(opensUrls ? [true] : [])]),
    fromState({ id, account, state }) {
      const [service, within, opensUrls = false] = state.startsWith('[')
        ? (JSON.parse(state) as [string, string | null, boolean?])
        : [state, null];
      return { id, account, within, service, opensUrls };
    },
  });
  const isWith = (service: string | null) => (session: BuiltinSession) => session.service === service;

  return {
    has: (service) => bridgedService(targets(), service) !== null && catalogue.service(service) === null,
    sessions,

    async stateless(service, request, context, answer) {
      const server = primitiveServer(deps, service, context.caller);
      if (server === null) throw new GatewayError('not_found', `${quote(service)} no longer exists`);
      const { message, client } = request;
      const modern = client === 'modern';
      if (message.method === 'server/discover')
        return endOwn(answer, message, { result: server.discoverResult() }, modern);
      if (message.method === 'ping') return endOwn(answer, message, { result: '{}' }, modern);
      await answerTools(server, request, answer, (ask) => answerAsk(ask, context, answer));
    },

    serviceTransport: createSessionTransport<BuiltinSession>(
      {
        async open(service, message, { caller }) {
          const server = primitiveServer(deps, service!, caller);
          if (server === null) return { session: null, response: noSession(message.idText) };
          const opens = opensUrls(capabilitiesOf(message.text));
          const session = await sessions.add({ ...ownerOf(caller), service: service!, opensUrls: opens });
          if (session === null) return refuseTooMany(message, config.sessionsMax);
          return openedWith(session, message, server.initializeResult(message.params?.['protocolVersion']));
        },
        enter: (service, id, owner) => sessions.enter(id, owner, isWith(service)),
        async request({ session, ended }, message, events, context, answer) {
          const server = primitiveServer(deps, session.service, context.caller);
          if (server === null) {
            const { text, status } = noSession(message.idText);
            return answer.end(text, status);
          }
          const capabilities = session.opensUrls ? OPENS_URLS : {};
          await answerTools(server, { message, client: 'legacy', capabilities, events }, answer, (ask) =>
            runCancellable(running, session.id, null, message, answer, (cancelled) =>
              runUntilAborted([context.gone, ended, cancelled], (signal) => answerAsk(ask, context, answer, signal)),
            ),
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
    ),
  };
}

const NO_STREAM = {
  code: ERROR.server,
  message: 'This server sends messages only in its replies, so there is no stream to listen to',
};

/** Answers `tools/list`, passes a `tools/call` to `ask`, and refuses every other method. */
async function answerTools(
  server: PrimitiveServer,
  { message, client, capabilities, events }: Pick<McpRequest, 'message' | 'client' | 'capabilities' | 'events'>,
  answer: ClientAnswer,
  ask: (request: AskRequest) => Promise<void>,
): Promise<void> {
  const { method, params } = message;
  const modern = client === 'modern';
  if (method === 'tools/list') return endOwn(answer, message, { result: server.listResult(modern) }, modern);
  if (method !== 'tools/call') return endOwn(answer, message, { error: onlyTools(method) }, modern);
  const fault = server.toolFault(message);
  if (fault) return endOwn(answer, message, { error: fault }, modern);
  const { kind, name, info } = server;
  await ask({ kind, name, arguments: params?.['arguments'], message, client, capabilities, events, info });
}

const onlyTools = (method: string) => ({
  code: ERROR.methodNotFound,
  message: `This server has only tools. It does not support the method ${quote(method)}`,
});

interface PrimitiveServer extends Pick<BridgedService, 'kind' | 'name'> {
  readonly info: ServerInfo;
  discoverResult(): string;
  /**
   * The result of `initialize`, as JSON text, in the revision that the client asks for if it is known, else the newest.
   */
  initializeResult(revision: unknown): string;
  listResult(modern: boolean): string;
  /** The error of a `tools/call` that names a wrong tool; null for the right tool. */
  toolFault(message: RequestMessage): JsonRpcError | null;
}

const DOES = {
  a2a: 'Send a message to the agent',
  model: 'Ask the model',
  image: 'Make an image with',
  video: 'Make a video with',
} as const;
const CAPABILITIES = '{"tools":{}}';

/**
 * The server at an address for a caller. Null if the address is not one of an agent or a model. Throws GatewayError
 * `permission_denied`.
 */
function primitiveServer(
  { targets, catalog, version }: Pick<BuiltinServersDeps, 'targets' | 'catalog' | 'version'>,
  service: string,
  { key }: Pick<Caller, 'key'>,
): PrimitiveServer | null {
  const bridged = bridgedService(targets(), service);
  if (bridged === null) return null;
  const { kind, name } = bridged;
  const { service: resolved, offers } = offersOf(catalog, kind, name);
  authorise({ key }, offers[0]!.primitive, resolved);
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
    initializeResult(revision) {
      const members = {
        protocolVersion: JSON.stringify(agreedRevision(revision)),
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
      const toolName = params?.['name'];
      if (toolName === tool) return null;
      if (typeof toolName !== 'string') return { code: ERROR.invalidParams, message: 'tools/call needs a name' };
      return {
        code: ERROR.invalidParams,
        message: `There is no tool ${printable(toolName)} here: the tool is ${tool}`,
      };
    },
  };
}
