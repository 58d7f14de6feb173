import type { ToolCatalogue } from '../../catalogue/tool-catalogue.ts';
import type { LegacyDoor, LegacyDoorDeps } from '../../door/legacy-door.ts';
import type { CancelNotes } from '../../sessions/cancel-notes.ts';
import type { KeptSessions, KeptSessionsDeps } from '../../sessions/kept-sessions.ts';
import type { StandaloneRun } from '../../call/standalone.ts';
import type { AnswerAsk } from './answer-ask.ts';
import { createFrontSessions, type FrontSession } from './front-sessions.ts';
import { createPrimitiveServers, type PrimitiveServersDeps } from './primitive-server.ts';
import { createSessionFront } from './session-front.ts';
import { spokenService } from './spoken.ts';
import { createStandaloneFront } from './standalone-front.ts';

interface FrontDeps extends PrimitiveServersDeps, LegacyDoorDeps, KeptSessionsDeps {
  readonly catalogue: Pick<ToolCatalogue, 'service'>;
  readonly answerAsk: AnswerAsk;
  readonly cancels: CancelNotes;
}

/** Agents and models as MCP servers of the gateway: `/mcp/a2a/<agent>`, `/mcp/model/<model>`. */
interface Front {
  /** Whether an address is that of an agent or a model. A tool service with exactly this name has precedence. */
  has(service: string): boolean;
  readonly standalone: StandaloneRun;
  readonly sessionDoor: LegacyDoor;
  readonly sessions: Pick<KeptSessions<FrontSession>, 'sweep' | 'count' | 'close'>;
}

export function createFront(deps: FrontDeps): Front {
  const { speakers, catalogue, config } = deps;
  const sessions = createFrontSessions(deps);
  const doors = { ...deps, serverOf: createPrimitiveServers(deps) };
  return {
    has: (service) => spokenService(speakers(), service) !== null && catalogue.service(service) === null,
    standalone: createStandaloneFront(doors),
    sessionDoor: createSessionFront({ ...doors, sessions, sessionsMax: config.sessionsMax }),
    sessions,
  };
}
