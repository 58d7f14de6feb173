import {
  createKeptSessions,
  type KeptSession,
  type KeptSessions,
  type KeptSessionsDeps,
} from '../../sessions/kept-sessions.ts';

/** The session of a legacy client with an agent or a model. */
export interface FrontSession extends KeptSession {
  /** Its full name: `a2a/weather`. */
  readonly service: string;
}

export const createFrontSessions = (deps: KeptSessionsDeps): KeptSessions<FrontSession> =>
  createKeptSessions<FrontSession>({
    ...deps,
    kind: 'mcp-front',
    toState: ({ service }) => service,
    fromState: ({ id, account, state }) => ({ id, account, service: state }),
  });
