import {
  createKeptSessions,
  type KeptSession,
  type KeptSessions,
  type KeptSessionsDeps,
} from '../../sessions/kept-sessions.ts';

/** The session of a legacy client with an agent or a model. */
export interface FrontSession extends KeptSession {
  /** The full name of the agent or model, such as `a2a/weather`. */
  readonly service: string;
}

export const createFrontSessions = (deps: KeptSessionsDeps): KeptSessions<FrontSession> =>
  createKeptSessions<FrontSession>({
    ...deps,
    kind: 'mcp-front',
    toState: ({ service }) => service,
    fromState: ({ id, account, state }) => ({ id, account, service: state }),
  });
