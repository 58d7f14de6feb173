import type { ToolCatalogue } from '../../catalogue/tool-catalogue.ts';
import type { SessionTransport, SessionTransportDeps } from '../../http/session-transport.ts';
import type { CancelNotes } from '../../sessions/cancel-notes.ts';
import type { KeptSessions, KeptSessionsDeps } from '../../sessions/kept-sessions.ts';
import type { RunStateless } from '../../call/stateless.ts';
import type { AnswerAsk } from './answer-ask.ts';
import { createBuiltinSessions, type BuiltinSession } from './builtin-sessions.ts';
import { createPrimitiveServers, type PrimitiveServersDeps } from './primitive-server.ts';
import { createBuiltinTransport } from './builtin-transport.ts';
import { bridgedService } from './bridged-kinds.ts';
import { createBuiltinStateless } from './builtin-stateless.ts';

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
